"""Two gloo processes: Eq. 12 over workers, equal weights, the same result on both."""

import multiprocessing
import os
import socket
import traceback
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from workbench.grpo import read_log
from workbench.grpo.config import ObjectiveConfig
from workbench.grpo.lora import Policy
from workbench.grpo.reduction import micro_batch_weights
from workbench.grpo.update import Updater, make_batch
from workbench.grpo.workers import Workers

PLAIN = ObjectiveConfig(entropy_coefficient=0, kl_coefficient=0)
MICRO_BATCH = 2


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def on_two_workers(function, *arguments) -> list:
    """Results of ``function(*arguments)`` in two processes started as accelerate starts them."""
    import peft  # noqa: F401  imported once here instead of twice there
    import transformers  # noqa: F401

    context = multiprocessing.get_context("fork")
    queue, port = context.Queue(), str(free_port())
    processes = [
        context.Process(target=_worker, args=(rank, port, queue, function, arguments))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    results = dict(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    for result in results.values():
        if isinstance(result, Failure):
            pytest.fail(result.text)
    return [results[rank] for rank in range(2)]


@dataclass
class Failure:
    text: str


def _worker(rank, port, queue, function, arguments) -> None:
    from accelerate import PartialState

    PartialState._reset_state()  # the forked one says: a single process
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    try:
        queue.put((rank, function(*arguments)))
    except BaseException:
        queue.put((rank, Failure(traceback.format_exc())))
    torch.distributed.destroy_process_group()


def setting(world, workers):
    """All rollouts, cut to unequal numbers of generated tokens, and this worker's half."""
    config = world.toy_config(objective=PLAIN, micro_batch_rollouts=MICRO_BATCH)
    policy = Policy(world.tiny_model(), config, seed=1)
    engine = world.ToyEngine(world.tiny_model(), None)
    found = world.toy_rollout(
        engine, None, world.items(4), world.ToyAgent(), world.toy_config(), 1, 2
    )
    found[2].segments[:] = 0  # worker 1's first micro-batch: one rollout without any token
    advantages = [t.generated * np.float32(i + 1) for i, t in enumerate(found)]
    halves = [[0, 1, 4, 5], [2, 3, 6, 7]]
    return policy, config, found, advantages, halves[workers.rank]


def worker_gradients(world) -> dict[str, np.ndarray]:
    workers = Workers()
    assert workers.size == 2
    policy, config, found, advantages, mine = setting(world, workers)
    updater = Updater(policy, config, workers, seed=1)
    seen = {}

    def keep(self=updater.optimiser):
        seen.update({n: p.grad.numpy().copy() for n, p in policy.parameters.items()})

    updater.optimiser.step = keep
    config_batch = make_batch([found[i] for i in mine], [advantages[i] for i in mine], [0] * 4)
    records = updater.update(config_batch, step=0)
    scale = min(1.0, 1.0 / (records[0].grad_norm + 1e-6))  # undo clip_grad_norm_
    return {name: grad / scale for name, grad in seen.items()}


def test_gradient_of_two_workers_by_hand(world):
    first, second = on_two_workers(worker_gradients, world)
    policy, _, found, advantages, _ = setting(world, Workers())
    means = []
    for half in ([0, 1, 4, 5], [2, 3, 6, 7]):
        for pair in (half[:2], half[2:]):
            # On the rollout policy the surrogate's gradient is A times that of the log-prob.
            terms = []
            for i in pair:
                ids = torch.tensor(found[i].tokens[None].astype(np.int64))
                logp = policy.model(ids).logits[0].log_softmax(-1)
                for t in np.flatnonzero(found[i].generated):
                    terms.append(float(advantages[i][t]) * logp[t - 1, int(ids[0, t])])
            means.append(torch.stack(terms).mean())
    loss = -sum(means) / 4
    expected = torch.autograd.grad(loss, list(policy.parameters.values()))
    counts = [[int(found[i].generated.sum()) for i in h] for h in ([0, 1, 4, 5], [2, 3, 6, 7])]
    assert counts[1][0] == 0 and len({sum(c[:2]) for c in counts}) == 2
    assert micro_batch_weights(counts[1], MICRO_BATCH)[1] == 2
    for name, e in zip(first, expected):
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_allclose(first[name], e.numpy(), atol=2e-6, rtol=1e-4, err_msg=name)


def train(world, folder):
    trainer = world.toy_trainer(
        folder,
        world.toy_config(steps=3, mini_batch_questions=2, eval_every=2),
        eval_items=world.items(3),
    )
    trainer.run()
    return {n: p.detach().numpy().copy() for n, p in trainer.policy.parameters.items()}


def test_a_run_of_two_workers(world, tmp_path):
    first, second = on_two_workers(train, world, tmp_path)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    rows = read_log(tmp_path)
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    # All four questions, two a worker, four rollouts each.
    assert all(row["rollouts"] == 16 and row["groups"] == 4 for row in rows[1:])
    assert rows[1]["prefill_ratio"] == pytest.approx(1.0)
    assert (tmp_path / "final" / "adapter_model.safetensors").is_file()
    # Killed and started again with the same number of workers it goes on; alone it does not.
    assert on_two_workers(train, world, tmp_path)[0].keys() == first.keys()
    with pytest.raises(ValueError, match="workers was 2, is 1"):
        train(world, tmp_path)
