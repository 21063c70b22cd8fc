"""Made-up frames of the Search-G1 study with values that can be counted by hand."""

import numpy as np
import pandas as pd

from workbench.evaluation.search_g1_study import VARIANTS
from workbench.inference.bootstrap import BootstrapConfig
from workbench.reporting.comparisons import Setting

SETTING = Setting("2 M decoder", "World Factbook, 3000 passages, BM25", "batch 16 x 5, 20 steps")
CONFIG = BootstrapConfig(draws=200)
CATEGORIES = ("1-hop, single", "2-hop, chain")
STRATA = ("1-hop, memorised", "2-hop, chain")


def rollouts(
    condition, seeds=(0, 1), questions=8, right=4, searches=2, samples=1, decoding="greedy"
):
    """The first ``right`` questions are correct; even samples retrieved all their evidence."""
    rows = [
        {
            "item_id": f"q{q}", "group": f"q{q}", "sample": s, "category": CATEGORIES[q % 2],
            "stratum": STRATA[q % 2], "em": float(q < right), "searches": float(searches),
            "direct": float(searches == 0), "valid": 1.0, "missing": 0.0,
            "generated_tokens": 40.0, "observation_tokens": 90.0 * searches,
            "condition": condition, "training_seed": seed, "decoding": decoding,
            "cov": float(q < right) / (1 + s % 2), "all_evidence": float(q < right and s % 2 == 0),
        }
        for seed in seeds for q in range(questions) for s in range(samples)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def evaluated(conditions=("search_r1", *VARIANTS), seeds=(0, 1)):
    """Greedy rows; full Search-G1 is right on 5 of 8 with 2 searches, others on 4 with 3."""
    parts = [rollouts("base", (-1,), right=3, searches=1)]
    parts.append(rollouts("closed_book", (-1,), right=2, searches=0))
    for name in conditions:
        full = name == "search_g1"
        parts.append(rollouts(name, seeds, right=5 if full else 4, searches=2 if full else 3))
    return pd.concat(parts, ignore_index=True)


def grounded(conditions=("search_r1", *VARIANTS), seeds=(0, 1)):
    """q0 follows the document, q1 ignores it, q2 cannot be classified, other right ones are amb."""
    frame = evaluated(conditions, seeds)
    frame = frame[frame["condition"] != "closed_book"].reset_index(drop=True)
    right = (frame["em"] == 1) & (frame["searches"] > 0)
    number = frame["item_id"].str[1:].astype(int)
    score = number.map({0: 1.0, 1: 0.3, 2: 0.0}).fillna(0.6) * right
    unclassified = right & (number == 2)
    return frame.assign(
        correct_searched=right.astype(float), classified=(right & ~unclassified).astype(float),
        unclassified=unclassified.astype(float), invariant=(right & (number == 1)).astype(float),
        tc_in=(right & ~unclassified).astype(float), tc_sum=score, tc_searched_sum=score,
        own_closed_exact=(number < 2).astype(float),
        own_closed_sufficient=(number < 3).astype(float),
        base_closed_exact=(number < 2).astype(float),
        base_closed_sufficient=(number < 3).astype(float),
    )  # fmt: skip


def groups(
    conditions=("base", "search_r1", "search_g1", "search_g1_permuted", "search_g1_cost_only"),
):
    """Four samples a question; Search-G1 pays supported answers more, cost only pays all alike."""
    parts = []
    for name in conditions:
        seeds = (-1,) if name == "base" else (0, 1)
        part = rollouts(name, seeds, right=5, samples=4, decoding="sampled")
        support = np.where(part["all_evidence"] == 1, 1.0, 0.5 * (part["cov"] > 0))
        bonus = {"search_g1": 0.6 * support, "search_g1_permuted": 0.3 * (part["sample"] < 2)}
        reward = np.where(part["em"] == 1, 1.0 + bonus.get(name, 0.0), 0.05)
        parts.append(part.assign(reward=reward))
    return pd.concat(parts, ignore_index=True)


def labels(conditions=("base", "search_g1"), questions=10):
    """Strict differs from deletion on q0, paired sampling on q0 and q1, paired greedy nowhere."""
    rows = []
    for name in conditions:
        for seed in (-1,) if name == "base" else (0, 1):
            for q in range(questions):
                changed = q >= 4
                made = {
                    "deletion": changed, "strict": changed or q == 0, "paired_greedy": changed,
                    "paired_sampling": changed != (q < 2),
                }  # fmt: skip
                rows += [
                    {"condition": name, "training_seed": seed, "item_id": f"q{q}",
                     "construction": c, "changed": value}
                    for c, value in made.items()
                ]  # fmt: skip
    return pd.DataFrame(rows)


def history(correct=(0.5, 0.25), credited=(0.5, 1.0), wrong=(0.25, 0.0), seeds=1, **more):
    """Two steps of 16 groups after a held-out step 0."""
    rows = []
    for seed in range(seeds):
        rows.append({"seed": seed, "step": 0})
        for step in (1, 2):
            row = {
                "seed": seed, "step": step, "groups": 16.0, "rollouts": 80.0,
                "generated_tokens": 4000.0, "seconds": 10.0, "seconds_score": 1.0,
                "all_correct_groups": correct[step - 1], "all_wrong_groups": wrong[step - 1],
                "refits_installed": float(step == 2),
            }  # fmt: skip
            if correct[step - 1]:
                row |= {"all_correct_credited": credited[step - 1], "all_correct_reward_sd": 0.2}
            if wrong[step - 1]:
                row |= {"all_wrong_credited": 0.25 * seed, "all_wrong_reward_sd": 0.03}
            rows.append(row | more)
    return pd.DataFrame(rows)


def rounds(seeds=1):
    """One finished round of 6 questions and 5 rollouts each, and a failed one."""
    rows = []
    for seed in range(seeds):
        rows.append({
            "seed": seed, "number": 1, "failed": "", "rollouts": 30.0, "closed_book_decodes": 6.0,
            "deletion_decodes": 26.0, "rollout_tokens": 1500.0, "decode_tokens": 400.0,
            "seconds": 7.0,
        })  # fmt: skip
        rows.append({"seed": seed, "number": 2, "failed": "one class only"})
    return pd.DataFrame(rows)


def controls():
    rows = [
        ("D, reliance", 0.85, 0.80, 0.90), ("D, matched on count and length", 0.80, 0.70, 0.88),
        ("search count", 0.55, 0.48, 0.62), ("response length", 0.58, 0.51, 0.65),
        ("retrieved tokens", 0.60, 0.52, 0.68), ("answer-evidence overlap", 0.70, 0.62, 0.82),
        ("answer log-prob, mean", 0.66, 0.60, 0.72), ("answer log-prob, least", 0.68, 0.61, 0.75),
        ("response log-prob, mean", 0.52, 0.45, 0.59), ("D on shuffled labels", 0.49, 0.42, 0.56),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["predictor", "value", "low", "high"]).assign(n=120)
