"""A made-up world of about a hundred entities in the formats of KILT and Wikidata; a server.

Countries have a capital and languages, cities a country and a mayor, universities a city,
people a birthplace, two universities and a spouse, films a director and a cast.  Every fact has a
paragraph of its own; some stand after a hundred words of filler, in a later chunk.
"""

from __future__ import annotations

import bz2
import gzip
import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from workbench.questions.categories import CATEGORIES
from workbench.questions.sources.build import build
from workbench.questions.sources.settings import SourceConfig

WD = "http://www.wikidata.org"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
PREF = "http://www.w3.org/2004/02/skos/core#prefLabel"
NAME = "http://schema.org/name"
ALT = "http://www.w3.org/2004/02/skos/core#altLabel"
ABOUT = "http://schema.org/description"
XSD = "http://www.w3.org/2001/XMLSchema#"

PROPERTIES = {
    17: "country", 19: "place of birth", 26: "spouse", 31: "instance of", 36: "capital",
    37: "official language", 57: "director", 69: "educated at", 159: "headquarters location",
    161: "cast member", 569: "date of birth", 6: "head of government",
}  # fmt: skip
SAYS = {
    17: "{s} lies in {o} as everybody knows.",
    19: "{s} was born in {o}.",
    26: "In later years {s} married {o} after a long engagement.",
    36: "The seat of government of {s} is {o}.",
    37: "In {s} the courts use {o} for every hearing.",
    57: "{s} was directed by {o}.",
    69: "For some years {s} studied at {o} before moving on.",
    159: "The main building of {s} stands in {o} near the river.",
    161: "In {s} one role is played by {o}.",
    6: "The mayor of {s} is {o}.",
}
CLASSES = {5: "human", 515: "city", 6256: "country", 3918: "university", 11424: "film",
           34770: "language"}  # fmt: skip
_HEADS = "Bran Cor Dal Fen Gal Hul Jor Kel Lum Mor Nor Pel Quin Rav Sol Tam Ulm Vor Wes Zan".split()
_TAILS = "dova mek lia ston vik par reth nov ust berg".split()
FILLER = "It is said that nothing much happened here for a long while and then something did. " * 9


class World:
    """Entities, facts and pages; ``facts`` are (subject, property, object) of Q-numbers."""

    def __init__(self, people: int = 48, films: int = 24):
        self.names: dict[int, str] = {q: n for q, n in CLASSES.items()}
        self.kind: dict[int, int] = {}
        self.aliases: dict[int, list[str]] = defaultdict(list)
        self.facts: list[tuple[int, int, int]] = []
        self._next = 100
        languages = [self._new(34770, f"{n}ish") for n in ("Ort", "Peb", "Sku", "Tro", "Vam")]
        countries = [self._new(6256, f"{n}land") for n in ("Ar", "Bel", "Cim", "Dor", "Eth", "Fos")]
        cities = [self._new(515, _HEADS[i] + _TAILS[i % 10]) for i in range(18)]
        schools = [self._new(3918, f"{_HEADS[-i - 1]}{_TAILS[i]} University") for i in range(9)]
        persons = [
            self._new(5, f"{_HEADS[i % 20]}{_TAILS[3 * i % 10]}a {_TAILS[i // 5 % 10].title()}"
                         f"{_HEADS[7 * i % 20].lower()}")
            for i in range(people)
        ]  # fmt: skip
        made = [
            self._new(11424, f"The {_HEADS[i % 20]}{_TAILS[(i + 4 + i // 20) % 10]} Affair")
            for i in range(films)
        ]
        for i, country in enumerate(countries):
            self._add(country, 36, cities[3 * i])
            self._add(country, 37, languages[i % 5])
            self._add(country, 37, languages[(i + 1) % 5])
        for i, city in enumerate(cities):
            self._add(city, 17, countries[i // 3])
            self._add(city, 6, persons[(5 * i + 2) % people])
        for i, school in enumerate(schools):
            self._add(school, 159, cities[(2 * i + 1) % 18])
        for i, person in enumerate(persons):
            self._add(person, 19, cities[(5 * i) % 18])
            self._add(person, 69, schools[i % 9])
            self._add(person, 69, schools[(i + 1 + i // 9) % 9])
            self._add(person, 26, persons[i + 1 if i % 2 == 0 else i - 1])
        for i, film in enumerate(made):
            self._add(film, 57, persons[(2 * i) % people])
            for step in (1, 4, 9):
                self._add(film, 161, persons[(3 * i + step) % people])

    def _new(self, kind: int, name: str) -> int:
        self._next += 1
        assert name not in self.names.values(), name
        self.names[self._next], self.kind[self._next] = name, kind
        self.aliases[self._next] = [f"{name} ({CLASSES[kind][:3]}.)"]
        return self._next

    def _add(self, subject: int, prop: int, obj: int) -> None:
        self.facts.append((subject, prop, obj))

    def page_id(self, qid: int) -> int:
        return 10_000 + qid

    def title(self, qid: int) -> str:
        return f"{self.names[qid]} (film)" if self.kind[qid] == 11424 else self.names[qid]

    def record(self, qid: int) -> dict:
        """The KILT record of an entity."""
        text = [f"{self.title(qid)}\n", f"{self.names[qid]} is a {CLASSES[self.kind[qid]]}.\n"]
        anchors = []
        own = [fact for fact in self.facts if fact[0] == qid]
        for place, (_, prop, obj) in enumerate(own):
            if place == 1:
                text += ["Section::::More of it.\n"]
            if place == 1 and qid % 2:
                text += [FILLER + "\n"]
            marker = "BULLET::::- " if place % 3 == 2 else ""
            said = marker + SAYS[prop].format(s=self.names[qid], o=self.names[obj])
            before = SAYS[prop].split("{o}")[0].format(s=self.names[qid])
            start = len(marker) + len(before)
            anchor = {
                "paragraph_id": len(text), "start": start,
                "end": start + len(self.names[obj]), "text": self.names[obj],
                "href": quote(self.title(obj)), "wikipedia_title": self.title(obj),
                "wikipedia_id": str(self.page_id(obj)),
            }  # fmt: skip
            if obj % 3 == 0:  # the source has links without a target id too
                del anchor["wikipedia_id"], anchor["wikipedia_title"]
            anchors.append(anchor)
            text.append(said + "\n")
        return {
            "_id": str(self.page_id(qid)), "wikipedia_id": str(self.page_id(qid)),
            "wikipedia_title": self.title(qid), "text": text, "anchors": anchors,
            "categories": "Made up", "history": {"revid": qid, "pre_dump": True},
            "wikidata_info": {
                "wikidata_id": f"Q{qid}", "wikidata_label": self.names[qid], "aliases": None,
                "description": f"a {CLASSES[self.kind[qid]]}", "wikipedia_title": self.title(qid),
            },
        }  # fmt: skip

    def kilt_lines(self) -> list[str]:
        """All pages, classes included, and one page without an entity."""
        pages = [self.record(q) for q in self.kind]
        pages.append({
            "_id": "7", "wikipedia_id": "7", "wikipedia_title": "Nobody", "text": ["Nobody\n", "x"],
            "anchors": [], "categories": "", "history": {}, "wikidata_info": {},
        })  # fmt: skip
        for q, name in CLASSES.items():
            pages.append({
                "wikipedia_id": str(q), "wikipedia_title": name.title(), "text": [name, name],
                "anchors": [], "wikidata_info": {"wikidata_id": f"Q{q}", "wikidata_label": name},
            })  # fmt: skip
        return [json.dumps(page) for page in pages]

    def dump_lines(self) -> list[str]:
        """The truthy dump: ontology, items with other languages and values, properties."""
        lines = ["<http://wikiba.se/ontology#Dump> <http://creativecommons.org/ns#license> "
                 "<http://creativecommons.org/publicdomain/zero/1.0/> ."]  # fmt: skip
        for qid, name in self.names.items():
            item = f"<{WD}/entity/Q{qid}>"
            lines += [f'{item} <{p}> "{name}"@en .' for p in (LABEL, PREF, NAME)]
            lines += [f'{item} <{LABEL}> "{name} \\u00E4"@de .', f'{item} <{ABOUT}> "etwas"@de .']
            lines += [f'{item} <{ALT}> "{alias}"@en .' for alias in self.aliases[qid]]
            if qid in self.kind:
                lines.append(f'{item} <{ABOUT}> "one \\"{CLASSES[self.kind[qid]]}\\""@en .')
                lines.append(f"{item} <{WD}/prop/direct/P31> <{WD}/entity/Q{self.kind[qid]}> .")
                lines.append(
                    f'{item} <{WD}/prop/direct/P569> "1950-01-01T00:00:00Z"^^<{XSD}dateTime> .'
                )
            for s, p, o in self.facts:
                if s == qid:
                    lines.append(f"{item} <{WD}/prop/direct/P{p}> <{WD}/entity/Q{o}> .")
        for pid, label in PROPERTIES.items():
            lines.append(f'<{WD}/entity/P{pid}> <{LABEL}> "{label}"@en .')
        return lines


def write_lines(path: Path, lines: list[str]) -> Path:
    """Write as the suffix says: plain, gzip, or bzip2 in several streams."""
    data = "".join(line + "\n" for line in lines).encode()
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data, mtime=0))
    elif path.suffix == ".bz2":
        half = data.index(b"\n", len(data) // 2) + 1
        path.write_bytes(bz2.compress(data[:half]) + bz2.compress(data[half:]))
    else:
        path.write_bytes(data)
    return path


@pytest.fixture(scope="session")
def world():
    return World()


@pytest.fixture(scope="session")
def config():
    """Few questions of each category, small shards."""
    counts = {"train": 4, "test": 2, "validation": 1}
    return SourceConfig(
        counts={split: dict.fromkeys(CATEGORIES, n) for split, n in counts.items()},
        shard_lines=20,
        dump_shard_lines=200,
    )


@pytest.fixture(scope="session")
def write():
    return write_lines


@pytest.fixture(scope="session")
def files(world, tmp_path_factory):
    """The world as ``kilt.json.gz`` and ``truthy.nt.bz2``."""
    folder = tmp_path_factory.mktemp("sources")
    kilt = write_lines(folder / "kilt.json.gz", world.kilt_lines())
    return kilt, write_lines(folder / "truthy.nt.bz2", world.dump_lines())


@pytest.fixture(scope="session")
def built(files, config, tmp_path_factory):
    """(folder, report) of the world's questions."""
    out = tmp_path_factory.mktemp("built")
    return out, build(*files, out, config)


class Server:
    """Speaks the chat completions format over HTTP.

    It answers by ``answer(request)``: the phrase, or a status and the bytes of the body.
    """

    def __init__(self):
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.answer = lambda request: "the one from Bathmer"
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append({"path": self.path, **request})
                server.headers.append({k.lower(): v for k, v in self.headers.items()})
                found = server.answer(request)
                status, body = found if isinstance(found, tuple) else (200, found)
                if isinstance(body, str):
                    body = json.dumps(_completion(body)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()


def _completion(text):
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [choice], "usage": usage,
    }  # fmt: skip


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()
