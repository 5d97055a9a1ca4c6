"""Training of a causal language model by transformers' Trainer, so that a stopped run goes on to the same bits.

Beyond the Trainer's own checkpoints: the order of examples is fixed before the first step, a checkpoint that was cut
off is thrown away, and a finished model is written whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from shannon_game.estimators.code_identity import code_hash
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.lm.training_settings import TrainingSettings, example_order
from shannon_game.inference.manifest import SCRATCH, is_sealed, remove_scratch, seal
from shannon_game.inference.own_folder import own
from shannon_game.inference.progress import stage
from shannon_game.inference.store.keys import canonical_json, model_versions, result_key

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainingArguments

_MODEL, _CHECKPOINTS, _CURVES = "model", f"{SCRATCH}checkpoints", "curves.json"
_STATE = "trainer_state.json"
_CODE = (
    "shannon_game.inference.lm.training",
    "shannon_game.inference.lm.training_settings",
    "shannon_game.inference.lm.minimal_model",
    "shannon_game.inference.lm.answer_labels",
)
_CURVE_COLUMNS = {
    "loss": "loss_nats",
    "eval_loss": "held_out_loss_nats",
    "learning_rate": "learning_rate",
    "grad_norm": "gradient_norm",
}


@dataclass(frozen=True, eq=False)
class Examples:
    """What a model is trained on, in no order of its own."""

    items: Sequence[Any]
    collate: Callable[[list[Any]], dict[str, Any]]
    loss: Callable[[torch.Tensor, Any], torch.Tensor] | None = None


@dataclass(frozen=True, repr=False)
class TrainedModel(Result):
    """A model that was trained, on disk."""

    folder: Path
    curves: tuple[Mapping[str, float], ...]
    n_steps: int
    n_steps_now: int
    precision: str
    device: str


def training_key(**content: Any) -> str:
    """Name what a training run depends on: its content, this code, and the versions of torch and transformers."""
    return result_key(canonical_json({"content": content, "code": code_hash(*_CODE), "versions": model_versions()}))


def last_checkpoint(folder: Path) -> Path | None:
    """Find the newest whole checkpoint, and remove newer ones that were cut off or damaged."""
    found = {int(path.name.rpartition("-")[2]): path for path in folder.glob("checkpoint-*") if path.is_dir()}
    for step in sorted(found, reverse=True):
        try:
            state = json.loads((found[step] / _STATE).read_text(encoding="utf-8"))
            if state["global_step"] == step and is_sealed(found[step]):
                return found[step]
        except (OSError, ValueError, KeyError):
            pass
        remove_scratch(found[step])
    return None


def train_model(
    make: Callable[[], PreTrainedModel],
    tokenizer: PreTrainedTokenizerBase,
    examples: Examples,
    settings: TrainingSettings,
    folder: Path,
    *,
    seed: int,
    held_out: Sequence[Any] = (),
    what: str = "training",
) -> TrainedModel:
    """Train a model, go on with a run that was stopped, or take one that is finished."""
    finished = _finished(folder)
    if finished is not None:
        return finished
    folder.mkdir(parents=True, exist_ok=True)
    # two processes that write each other's checkpoints would both go on from the wrong ones
    with own(folder, field="store"):
        # another process may have ended between our look and our lock
        finished = _finished(folder)
        if finished is None:
            n_steps = settings.steps(len(examples.items))
            n_taken = n_steps * settings.batch_size * settings.n_accumulated
            order = example_order(len(examples.items), n_taken, seed=seed).tolist()
            arguments = _arguments(settings, folder, seed, n_steps, bool(len(held_out)))
            trainer = _trainer(make(), examples, order, arguments, held_out)
            n_before = _run(trainer, folder / _CHECKPOINTS, what)
            finished = replace(_write(trainer, tokenizer, folder, what), n_steps_now=n_steps - n_before)
            remove_scratch(folder / _CHECKPOINTS)
        return finished


def _run(trainer: Any, checkpoints: Path, what: str) -> int:
    """Train, from the last checkpoint if there is one; gives the steps that it had."""
    import torch  # noqa: PLC0415

    checkpoint = last_checkpoint(checkpoints)
    n_before = 0 if checkpoint is None else int(checkpoint.name.rpartition("-")[2])
    # the curve begins with the loss before any step; a run that goes on has it
    trainer.args.eval_on_start = checkpoint is None and trainer.eval_dataset is not None
    with torch.random.fork_rng(), stage(what, total=trainer.args.max_steps, announced=True) as show:
        show(n_before)
        trainer.add_callback(_progress(show))
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return n_before


def _finished(folder: Path) -> TrainedModel | None:
    try:
        made = json.loads((folder / _MODEL / _CURVES).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        made = None
    if made is None or not is_sealed(folder / _MODEL):
        problem = "has changed since it was trained; move it away, and it is trained again"
        raise InputError(problem, source=folder / _MODEL)
    return _made(folder, made)


def _made(folder: Path, made: dict[str, Any]) -> TrainedModel:
    return TrainedModel(folder=folder / _MODEL, **made | {"curves": tuple(made["curves"])}, n_steps_now=0)


def _write(trainer: Any, tokenizer: PreTrainedTokenizerBase, folder: Path, what: str) -> TrainedModel:
    """Write the model whole or not at all: whoever finds it takes it for finished."""
    curves = _curves(trainer.state.log_history)
    if any(not abs(value) < float("inf") for point in curves for value in point.values()):
        raise InputError(f"{what}: the loss is not finite; take a lower learning rate", field="learning_rate")
    made = {
        "curves": curves,
        "n_steps": trainer.args.max_steps,
        "precision": "bfloat16" if trainer.args.bf16 else "float32",
        "device": trainer.args.device.type,
    }
    partial = folder / f"{SCRATCH}{_MODEL}"
    remove_scratch(partial)
    trainer.model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    (partial / _CURVES).write_text(json.dumps(made), encoding="utf-8")
    seal(partial)
    partial.rename(folder / _MODEL)
    return _made(folder, made)


def _trainer(
    module: PreTrainedModel, examples: Examples, order: list[int], arguments: TrainingArguments, held_out: Sequence[Any]
) -> Any:
    from torch.utils.data import Subset  # noqa: PLC0415
    from transformers import PrinterCallback, Trainer  # noqa: PLC0415
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    transformers_logging.disable_progress_bar()

    class OwnLoss(Trainer):
        def compute_loss(
            self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            if examples.loss is None:
                return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            given = {name: value for name, value in inputs.items() if name != "labels"}
            outputs = model(**given, use_cache=False)
            loss = examples.loss(outputs.logits.float(), inputs["labels"])
            return (loss, outputs) if return_outputs else loss

    trainer = OwnLoss(
        model=module,
        args=arguments,
        data_collator=examples.collate,
        train_dataset=Subset(cast("Any", examples.items), order),
        eval_dataset=Subset(cast("Any", held_out), range(len(held_out))) if len(held_out) else None,
    )
    if examples.loss is not None:
        # a mean over its batch
        trainer.loss_is_scaled_for_ga = False
    trainer.remove_callback(PrinterCallback)
    return trainer


def _check_one_device(n_gpus: int, n_processes: int) -> None:
    """Refuse several GPUs: the Trainer would take a batch of each, and the order of examples be another one."""
    if n_gpus > 1:
        problem = f"sees {n_gpus} GPUs, and training takes one; set CUDA_VISIBLE_DEVICES=0 before the command"
        raise InputError(problem, field=Set("experiment.device"))
    if n_processes > 1:
        problem = f"is one of {n_processes} processes (WORLD_SIZE), and training takes one; start it without torchrun"
        raise InputError(problem, field=Set("experiment.device"))


def _arguments(settings: TrainingSettings, folder: Path, seed: int, n_steps: int, evaluates: bool) -> TrainingArguments:
    import torch  # noqa: PLC0415
    from transformers import TrainingArguments  # noqa: PLC0415

    on_cpu = settings.device == "cpu" or not torch.cuda.is_available()
    _check_one_device(0 if on_cpu else torch.cuda.device_count(), int(os.environ.get("WORLD_SIZE", "1")))
    can_halve = not on_cpu and torch.cuda.is_bf16_supported()
    halves = settings.precision == "bfloat16" or (settings.precision == "auto" and can_halve)
    return TrainingArguments(
        output_dir=str(folder / _CHECKPOINTS),
        max_steps=n_steps,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.n_accumulated,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup_steps,
        weight_decay=settings.weight_decay,
        adam_epsilon=1e-8,
        max_grad_norm=1.0,
        optim="adamw_torch",
        bf16=halves,
        use_cpu=on_cpu,
        seed=seed % 2**32,
        # the order is that of the examples
        train_sampling_strategy="sequential",
        logging_strategy="steps",
        logging_steps=settings.log_every,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=2,
        eval_strategy="steps" if evaluates else "no",
        eval_steps=settings.evaluate_every or settings.save_every,
        prediction_loss_only=True,
        label_names=["labels"],
        remove_unused_columns=False,
        dataloader_pin_memory=not on_cpu,
        report_to=[],
        disable_tqdm=True,
        log_level="error",
    )


def _progress(show: Callable[..., None]) -> Any:
    from transformers import TrainerCallback  # noqa: PLC0415

    class Progress(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
            show(state.global_step)

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
            seal(Path(args.output_dir, f"checkpoint-{state.global_step}"))

    return Progress()


def _curves(history: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    points: dict[int, dict[str, float]] = {}
    for entry in history:
        found = {ours: float(entry[theirs]) for theirs, ours in _CURVE_COLUMNS.items() if theirs in entry}
        if found:
            points.setdefault(int(entry["step"]), {"step": int(entry["step"])}).update(found)
    return [points[step] for step in sorted(points)]
