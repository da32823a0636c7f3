"""The plain PyTorch training loop over the same archive, dataset, data order and micro-batches as
`funcpipe train`: the yardstick for its results and its speed.

    python -m funcpipe.reference --model DIR --train DIR --steps 100 --batch-size 64 --lr 0.01

Prints a JSON line for each step, and one with a summary. Sums are taken in the pipeline's order, so
that the losses stay equal for hundreds of steps: the micro-batches of a replica run forward, then
backward in reverse; replicas are added in order. --sequential runs each backward right after its
forward, as most people would: as fast, with less memory.

With --replicas d it repeats the rule for buffers (batch norm's running statistics): each replica
runs its share of the micro-batches from the same buffers; floating-point buffers then change by the
sample-weighted mean of the replicas' changes, integer buffers are those of replica 0.
"""

import argparse
import json
import math
import sys
import time

import torch

from .dataset import Dataset, dropout_seed, epoch_order
from .model import ChainModel, load, read_manifest

_RANDOM_OPERATIONS = ("dropout", "bernoulli", "rand", "normal_", "uniform_", "multinomial")


def learning_rate(options, step):
    """The rate of a step, as src/core/learning_rate.h has it."""
    if step < options.warmup_steps:
        return options.lr * (step + 1) / options.warmup_steps
    position = step - options.warmup_steps
    if options.schedule == "step":
        return options.lr * options.factor ** (position // options.every_steps)
    if options.schedule == "cosine":
        angle = math.pi * position / max(1, options.steps - options.warmup_steps)
        return options.minimum + (options.lr - options.minimum) * (1 + math.cos(angle)) / 2
    return options.lr


def make_optimizer(options, parameters):
    if options.optimizer == "sgd":
        return torch.optim.SGD(
            parameters,
            lr=options.lr,
            momentum=options.momentum,
            dampening=options.dampening,
            weight_decay=options.weight_decay,
            nesterov=options.nesterov,
        )
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[options.optimizer]
    return kind(
        parameters,
        lr=options.lr,
        betas=(options.beta1, options.beta2),
        eps=options.epsilon,
        weight_decay=options.weight_decay,
    )


class Normalisation:
    """Records to what the model takes: bytes become value / 255, then (x - mean) / std."""

    def __init__(self, dtype, mean, std):
        self._dtype = dtype
        self._mean, self._std = torch.tensor(mean), torch.tensor(std)

    def __call__(self, x):
        result = x.to(self._dtype)
        if x.dtype == torch.uint8 and self._dtype.is_floating_point:
            result = result / 255
        if self._mean.numel() == 0:
            return result
        shape = [1, -1] + [1] * (x.dim() - 2) if self._mean.numel() > 1 else []
        return (result - self._mean.view(shape)) / self._std.view(shape)


def micro_batches(samples, size):
    """(index, first, count) of each micro-batch of a mini-batch."""
    return [
        (i, first, min(size, samples - first)) for i, first in enumerate(range(0, samples, size))
    ]


def share_of(items, replica, replicas):
    return items[replica * len(items) // replicas : (replica + 1) * len(items) // replicas]


class Trainer:
    def __init__(self, model, normalisation, options):
        self._model = model
        self._normalise = normalisation
        self._options = options
        parameters = [p for p in model.parameters() if p.requires_grad]
        self._parameters = parameters
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        self._optimizer = make_optimizer(options, parameters)
        cross_entropy = options.loss == "cross_entropy"
        self._loss = (
            torch.nn.functional.cross_entropy if cross_entropy else torch.nn.functional.mse_loss
        )
        self._random_layers = {
            i for i, layer in enumerate(model.children()) if _draws_random_numbers(layer)
        }

    def step(self, step, inputs, targets):
        """One optimiser update on a mini-batch; returns its mean loss."""
        self._model.train()
        self._optimizer.zero_grad(set_to_none=False)
        batches = micro_batches(len(inputs), self._options.micro_batch_size)
        if self._options.replicas == 1:
            loss = self._run(step, batches, inputs, targets)
        else:
            loss = self._run_replicas(step, batches, inputs, targets)
        if self._options.clip_norm > 0:
            self._clip_gradients()
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self._options, step)
        self._optimizer.step()
        return loss

    def _run(self, step, batches, inputs, targets):
        total, pending = 0.0, []
        for index, first, count in batches:
            x = self._normalise(inputs[first : first + count])
            y = targets[first : first + count]
            self._model.before_layer = self._seeder(step, index)
            output = self._model(x)
            y = y.long() if self._options.loss == "cross_entropy" else y.float().view_as(output)
            loss = self._loss(output, y)
            total += loss.item() * count / len(inputs)
            pending.append(loss * (count / len(inputs)))
            if self._options.sequential:
                pending.pop().backward()
        self._model.before_layer = None
        while pending:
            pending.pop().backward()
        return total

    def _seeder(self, step, micro_batch):
        if not self._random_layers:
            return None

        def before_layer(layer):
            if layer in self._random_layers:
                torch.manual_seed(dropout_seed(self._options.seed, step, micro_batch, layer))

        return before_layer

    def _run_replicas(self, step, batches, inputs, targets):
        buffers, gradients = list(self._model.buffers()), [p.grad for p in self._parameters]
        start = [buffer.clone() for buffer in buffers]
        first_result = None
        changes = [torch.zeros_like(buffer) for buffer in buffers]
        sums = [torch.zeros_like(gradient) for gradient in gradients]
        loss = 0.0
        for replica in range(self._options.replicas):
            _copy(start, buffers)
            _copy([torch.zeros(())] * len(gradients), gradients)
            share = share_of(batches, replica, self._options.replicas)
            loss += self._run(step, share, inputs, targets)
            weight = sum(count for _, _, count in share) / len(inputs)
            for total, buffer, before in zip(changes, buffers, start):
                if buffer.is_floating_point():
                    total += torch.where(buffer == before, torch.zeros(()), buffer - before) * weight
            for total, gradient in zip(sums, gradients):
                total += gradient
            first_result = first_result or [buffer.clone() for buffer in buffers]
        _copy(sums, gradients)
        for buffer, before, change, first in zip(buffers, start, changes, first_result):
            buffer.copy_(before + change if buffer.is_floating_point() else first)
        return loss

    def _clip_gradients(self):
        """torch.nn.utils.clip_grad_norm_, with the norm in double precision."""
        squares = sum(p.grad.double().square().sum().item() for p in self._parameters)
        scale = self._options.clip_norm / (math.sqrt(squares) + 1e-6)
        if scale < 1:
            for parameter in self._parameters:
                parameter.grad.mul_(scale)

    def accuracy(self, dataset):
        """Share of the records whose largest output is the target."""
        self._model.eval()
        inputs, targets = torch.from_numpy(dataset.inputs), torch.from_numpy(dataset.targets)
        correct = 0
        with torch.no_grad():
            for first in range(0, len(dataset), 256):
                output = self._model(self._normalise(inputs[first : first + 256]))
                correct += (output.argmax(1) == targets[first : first + 256].long()).sum().item()
        return correct / len(dataset)


def _copy(values, targets):
    for value, target in zip(values, targets):
        target.copy_(value)


def _draws_random_numbers(layer):
    if isinstance(layer, torch.jit.ScriptModule):
        graph = str(layer.inlined_graph)
        return any(name in graph for name in _RANDOM_OPERATIONS)
    return True


def train(trainer, dataset, options):
    """Yields (step, loss, learning rate, samples)."""
    inputs, targets = torch.from_numpy(dataset.inputs), torch.from_numpy(dataset.targets)
    steps_per_epoch = -(-len(dataset) // options.batch_size)
    for step in range(options.steps):
        epoch, position = divmod(step, steps_per_epoch)
        if position == 0:
            order = torch.tensor(
                epoch_order(len(dataset), epoch, options.seed, not options.no_shuffle)
            )
        records = order[position * options.batch_size : (position + 1) * options.batch_size]
        loss = trainer.step(step, inputs[records], targets[records])
        yield step, loss, learning_rate(options, step), len(records)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m funcpipe.reference")
    add = parser.add_argument
    add("--model", required=True, help="model archive (folder)")
    add("--eager", metavar="MODULE:ATTRIBUTE", help="run this model with the archive's weights")
    add("--train", required=True, help="dataset (folder)")
    add("--test", help="dataset whose accuracy is given at the end")
    add("--steps", type=int, required=True)
    add("--batch-size", type=int, required=True)
    add("--micro-batch-size", type=int, help="default: the whole batch")
    add("--replicas", type=int, default=1)
    add("--loss", choices=["cross_entropy", "mse"], default="cross_entropy")
    add("--optimizer", choices=["sgd", "adam", "adamw"], default="sgd")
    add("--lr", type=float, default=0.01)
    add("--momentum", type=float, default=0)
    add("--dampening", type=float, default=0)
    add("--nesterov", action="store_true")
    add("--beta1", type=float, default=0.9)
    add("--beta2", type=float, default=0.999)
    add("--epsilon", type=float, default=1e-8)
    add("--weight-decay", type=float, default=0)
    add("--clip-norm", type=float, default=0)
    add("--schedule", choices=["constant", "step", "cosine"], default="constant")
    add("--warmup-steps", type=int, default=0)
    add("--every-steps", type=int, default=1)
    add("--factor", type=float, default=0.1)
    add("--minimum", type=float, default=0)
    add("--normalize-mean", type=float, nargs="*", default=[])
    add("--normalize-std", type=float, nargs="*", default=[])
    add("--seed", type=int, default=0)
    add("--sequential", action="store_true", help="backward right after each forward")
    add("--no-shuffle", action="store_true")
    add("--threads", type=int, default=1)
    add("--device", choices=["cpu"], default="cpu")
    add("--save", metavar="FILE", help="write the state_dict with torch.save")
    options = parser.parse_args(arguments)
    options.micro_batch_size = options.micro_batch_size or options.batch_size
    return options


def load_model(options):
    model = load(options.model)
    if not options.eager:
        return model
    from .__main__ import find_model
    from .export import _layers_of

    eager = ChainModel(_layers_of(find_model(options.eager)).items())
    eager.load_state_dict(model.state_dict(), strict=False)
    return eager


def main(arguments=None):
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    torch._C._jit_set_profiling_mode(False)
    torch._C._set_graph_executor_optimize(False)
    facts = read_manifest(options.model)["inputs"][0]
    dtype = getattr(torch, facts["dtype"])
    normalisation = Normalisation(dtype, options.normalize_mean, options.normalize_std)
    trainer = Trainer(model := load_model(options), normalisation, options)
    dataset = Dataset(options.train)
    samples, start = 0, None  # of all steps but the first, which warms up
    for step, loss, rate, count in train(trainer, dataset, options):
        print(json.dumps({"step": step, "loss": loss, "learning_rate": rate}), flush=True)
        samples += count if start is not None else 0
        start = start or time.perf_counter()
    seconds = time.perf_counter() - start
    summary = {"steps": options.steps, "samples_per_second": samples / seconds if samples else None}
    if options.test:
        summary["accuracy"] = trainer.accuracy(Dataset(options.test))
    if options.save:
        torch.save({name: value.clone() for name, value in model.state_dict().items()}, options.save)
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
