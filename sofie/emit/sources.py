"""Renders a program's files from the templates beside this module."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import pathlib
from collections.abc import Mapping, Sequence

import jinja2

import sofie
from sofie.emit import functor, weights
from sofie.emit.files import Files
from sofie.emit.names import Names, identifier
from sofie.emit.sharing import Functors
from sofie.emit.text import c_string, comment
from sofie.ir import dim_text, dims
from sofie.ir.program import (
    Attention,
    Buffer,
    BufferKind,
    DenseLayer,
    DenseReduce,
    Gemm,
    Matrix,
    Option,
    Pointwise,
    Program,
    Reduce,
    Region,
    Repeat,
    Requirement,
    Routine,
    Scatter,
    Segment,
    Step,
    TopK,
    launches,
)
from sofie.passes.batch import Batch
from sofie.passes.reduce_rank import Reduced
from sofie.plan.lifetimes import Lifetime, lifetimes

_BACKENDS = (
    ("cpu", "Cpu", "CpuSerial", "cc"),
    ("openmp", "OpenMp", "CpuOpenMp", "cc"),
    ("cuda", "Cuda", "Cuda", "cu"),
)


@dataclasses.dataclass(frozen=True)
class Options:
    """How a model is to be called and cut up.

    Attributes:
      name: stem of the files.
      namespace: C++ namespace.
      include_prefix: folder of the files as includes spell it; may be empty.
      shards: number of sources that the steps are spread over.
      embedded_weights: False where a session reads the weights from a file.
      host: names and versions of what the machine adds to the build; see ``host.versions``.
      reduced: matrices that have a lower rank than the model's, for the manifest.
      batch: whether the model's rows meet.
    """

    name: str
    namespace: str
    include_prefix: str
    shards: int
    embedded_weights: bool = True
    host: Mapping[str, str] = dataclasses.field(default_factory=dict)
    reduced: Sequence[Reduced] = ()
    batch: Batch = Batch(None, "")


@dataclasses.dataclass(frozen=True)
class _Field:
    """A member of the public structs."""

    name: str
    identifier: str
    cpp: str
    enum: str
    shape: str


@dataclasses.dataclass(frozen=True)
class _StepView:
    """A step as templates print it."""

    number: int
    nodes: str
    kernel: str
    body: functor.Functor | None
    call: str
    template_arguments: str
    spaces: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class _BlockView:
    """Steps below a ``for`` or an ``if``, as templates print them."""

    head: str
    steps: tuple[_StepView | _BlockView, ...]


def _leaves(views: Sequence[_StepView | _BlockView]) -> list[_StepView]:
    """The steps, those inside of repetitions included, in order."""
    found: list[_StepView] = []
    for view in views:
        found += [view] if isinstance(view, _StepView) else _leaves(view.steps)
    return found


def _kernels(steps: Sequence[_StepView]) -> list[tuple[str, functor.Functor]]:
    """Each functor that the steps launch, once, with what it is first used for."""
    found: dict[str, tuple[str, functor.Functor]] = {}
    for step in steps:
        if step.body is not None:
            found.setdefault(step.body.name, (step.nodes, step.body))
    return list(found.values())


# Longer formulas of extents say little to a reader of the header.
_LONGEST_EXTENT = 60


@dataclasses.dataclass(frozen=True)
class _Symbol:
    """A member of the struct of symbols' values."""

    name: str
    is_real: bool


def _segments_of_buffers(segments: Sequence[Segment]) -> dict[int, int]:
    """The segment that first writes each buffer, by the buffer's id."""
    found: dict[int, int] = {}
    for number, segment in enumerate(segments):
        for step in segment.steps:
            for buffer in step.writes():
                found.setdefault(id(buffer), number)
    return found


def _is_constant(layer: DenseLayer) -> bool:
    regions = (layer.weight, layer.bias)
    return all(r is None or r.buffer.kind is BufferKind.WEIGHT for r in regions)


def render(program: Program, options: Options) -> Files:
    """File contents by file name."""
    return _Renderer(program, options).files()


@functools.cache
def _environment() -> jinja2.Environment:
    """Compiles every template once in a process."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


class _Renderer:
    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.lifetimes: list[Lifetime] = lifetimes(program)
        self.segments = program.segments()
        self.segment_of = _segments_of_buffers(self.segments)
        self.symbol_names = program.symbol_names()
        reals = {
            s.name
            for g in self.segments
            for r in g.reads
            for s in r.symbols
            if s.is_integer is None
        }
        self.symbols = [_Symbol(name, name in reals) for name in self.symbol_names]
        self.weights = program.weights()
        self.weight_names = weights.names(self.weights)
        self.weight_offsets, self.weight_bytes = weights.offsets(self.weights)
        self.functors = Functors()
        self.pointers = Names(("launch", "d", "buffers", "weights", "I", "B"))
        self.pointer_names: dict[int, str] = {}
        for lifetime in self.lifetimes:
            self._name(lifetime.buffer)
        for buffer in (*self.weights, *self.program.states()):
            self._name(buffer)

    def _name(self, buffer: Buffer) -> None:
        base = identifier(identifier(buffer.name).lower())
        if buffer.kind is not BufferKind.WEIGHT:
            base = {"input": "in_", "output": "out_"}.get(buffer.kind.value, "") + base
        self.pointer_names[id(buffer)] = self.pointers.new(base)

    def files(self) -> Files:
        """All files."""
        options = self.options
        steps = [(k, step) for k, segment in enumerate(self.segments) for step in segment.steps]
        views = self._views([step for _, step in steps], 0)
        leaves = _leaves(views)
        per_shard = -(-len(views) // options.shards) if views else 0
        prefix = f"{options.include_prefix}/" if options.include_prefix else ""
        common: dict[str, object] = {
            "options": options,
            "include": f"{prefix}{options.name}",
            "guard": identifier(f"{prefix}{options.name}").upper(),
            "symbols": self.symbols,
            "segments": len(self.segments),
            "shards": range(options.shards),
            "backends": _BACKENDS,
        }
        texts: dict[str, str] = {}
        name = options.name
        for number in range(options.shards):
            here = slice(number * per_shard, (number + 1) * per_shard)
            shard = self._by_segment([k for k, _ in steps[here]], views[here])
            texts[f"{name}_steps_{number}.h"] = self._render(
                "steps_shard.h.j2",
                common,
                number=number,
                steps=_leaves(shard),
                sequence=shard,
                pointers=self._used([step for _, step in steps[here]]),
            )
            for backend in _BACKENDS:
                texts[f"{name}_steps_{number}_{backend[0]}.{backend[3]}"] = self._render(
                    "steps_backend.j2", common, number=number, backend=backend
                )
        texts[f"{name}_steps.h"] = self._render("steps.h.j2", common)
        texts[f"{name}_kernels.h"] = self._render(
            "kernels.h.j2",
            common,
            kernels=_kernels(leaves),
            sequence=self._by_segment([k for k, _ in steps], views),
            memories=self._memories(),
            comment=comment,
        )
        graph_hash = self._graph_hash(texts)
        interface = self._interface()
        texts[f"{name}.h"] = self._render("model.h.j2", common, **interface)
        texts[f"{name}_alpaka.h"] = self._render("model_alpaka.h.j2", common, **interface)
        texts[f"{name}_session.cc"] = self._render(
            "session.cc.j2",
            common,
            **interface,
            steps=leaves,
            buffers=[self._buffer_row(lifetime) for lifetime in self.lifetimes],
            program=[self._segment(k) for k in range(len(self.segments))],
            graph_hash=", ".join(f"0x{byte:02x}" for byte in graph_hash),
            weight_bytes=self.weight_bytes,
            has_random_state=bool(self.program.states()),
            row_requirements=[self._requirement(r) for r in self.program.row_requirements],
            version=c_string(sofie.VERSION),
        )
        files: Files = {file: [text.encode()] for file, text in texts.items()}
        files[f"{name}_weights.safetensors"] = weights.File(self.weights, graph_hash)
        files[f"{name}_manifest.json"] = [self._manifest(interface, leaves, graph_hash)]
        return files

    def _render(self, template: str, common: Mapping[str, object], **extra: object) -> str:
        text = _environment().get_template(template).render({**common, **extra})
        return text.rstrip("\n") + "\n"

    # Steps.

    def _pointer(self, buffer: Buffer) -> str:
        return self.pointer_names[id(buffer)]

    @staticmethod
    @functools.lru_cache(maxsize=100_000)
    def _host(value: dims.Expr) -> str:
        """A size on the host, in terms of ``d``."""
        inside = dims.iterations(value)
        text = dim_text.to_cpp(value, lambda s: s.name if s in inside else f"d.{s.name}")
        return text if value.is_Integer or value.is_Symbol else f"({text})"

    def _space(self, extents: list[dims.Expr]) -> str:
        values = ", ".join(self._host(e) for e in extents)
        return f"std::array<int64_t, {len(extents)}>{{{values}}}"

    def _by_segment(
        self, segments: Sequence[int], views: Sequence[_StepView | _BlockView]
    ) -> Sequence[_StepView | _BlockView]:
        """The steps of a shard, those of each segment under a condition where there are several."""
        if len(self.segments) == 1:
            return views
        blocks = []
        for segment in sorted(set(segments)):
            inner = tuple(v for k, v in zip(segments, views, strict=True) if k == segment)
            blocks.append(_BlockView(f"if (segment == {segment})", inner))
        return blocks

    def _views(self, steps: Sequence[Step], number: int) -> list[_StepView | _BlockView]:
        """What templates print of steps, the first launch of which is number ``number``."""
        views: list[_StepView | _BlockView] = []
        for step in steps:
            if isinstance(step, Repeat):
                inner = tuple(self._views(step.steps, number))
                variable, extent = step.loop.var.name, self._host(step.loop.extent)
                head = f"for (int64_t {variable} = 0; {variable} < {extent}; ++{variable})"
                views.append(_BlockView(head, inner))
            else:
                views.append(self._step(number, step))
            number += sum(1 for _ in launches([step]))
        return views

    def _step(self, number: int, step: Step) -> _StepView:
        nodes = " + ".join(step.nodes)
        if isinstance(step, Pointwise):
            name = self._functor_name(number, step)
            body = self.functors.shared(functor.pointwise(step, name, self._pointer, self._host))
            space = self._space([loop.extent for loop in step.loops])
            return _StepView(number, nodes, body.name, body, "Pointwise", "", (space,))
        if isinstance(step, Reduce):
            name = self._functor_name(number, step)
            body = self.functors.shared(functor.reduction(step, name, self._pointer, self._host))
            along = "kReduced" if step.policy.along_reduced else "kKept"
            policy = (
                f"sofie::kernels::ReducePolicy<sofie::kernels::Along::{along}, {step.policy.lanes}>"
            )
            spaces = tuple(
                self._space([loop.extent for loop in loops]) for loops in (step.kept, step.reduced)
            )
            call = "template Normalize" if step.per_element else "template Reduce"
            return _StepView(number, nodes, body.name, body, call, f"<{policy}>", spaces)
        if isinstance(step, Scatter):
            name = self._functor_name(number, step)
            body = self.functors.shared(functor.scatter(step, name, self._pointer, self._host))
            spaces = tuple(
                self._space([loop.extent for loop in loops]) for loops in (step.lines, step.updates)
            )
            return _StepView(number, nodes, body.name, body, "Scatter", "", spaces)
        if isinstance(step, DenseReduce):
            return self._dense(number, nodes, step)
        if isinstance(step, Attention):
            name = self._functor_name(number, step)
            body = self.functors.shared(functor.attention(step, name, self._pointer, self._host))
            arguments = self._attention(step)
            return _StepView(number, nodes, body.name, body, "Attention", "", (arguments,))
        if isinstance(step, Gemm):
            call = f"template Gemm<{step.dtype.storage}>"
            return _StepView(number, nodes, "gemm", None, call, "", (), self._gemm(step))
        if isinstance(step, Routine):
            types = ", ".join(t.storage for t in step.types)
            call, kernel = f"template {step.name}<{types}>", step.name.lower()
            return _StepView(number, nodes, kernel, None, call, "", (), self._routine(step))
        if isinstance(step, TopK):
            name = self._functor_name(number, step)
            body = functor.selection(step, name, self._pointer, self._host)
            body = self.functors.shared(body)
            spaces = (self._space([loop.extent for loop in step.kept]), self._topk(step))
            return _StepView(number, nodes, body.name, body, "TopK", "", spaces)
        raise AssertionError(type(step).__name__)

    def _dense(self, number: int, nodes: str, step: DenseReduce) -> _StepView:
        name = self._functor_name(number, step)
        body = functor.dense_reduction(step, name, self._pointer, self._host)
        body = self.functors.shared(body)
        widths = [step.width, *(layer.outputs for layer in step.layers)]
        shape = ", ".join(
            [
                str(int(step.row.extent)),
                f"sofie::Precision::{step.precision.value}",
                *map(str, widths),
            ]
        )
        layers = ", ".join(
            f"sofie::kernels::DenseLayer{{{self._at(layer.weight)}, "
            f"{self._at_or_null(layer.bias)}, "
            f"{str(layer.relu).lower()}, {str(_is_constant(layer)).lower()}, "
            f"{self._at_or_null(layer.parts)}}}"
            for layer in step.layers
        )
        spaces = (
            self._space([loop.extent for loop in step.kept]),
            f"std::array<sofie::kernels::DenseLayer, {len(step.layers)}>{{{layers}}}",
        )
        call, arguments = "template Dense", f"<sofie::kernels::DenseShape<{shape}>>"
        return _StepView(number, nodes, body.name, body, call, arguments, spaces)

    @staticmethod
    def _functor_name(number: int, step: Step) -> str:
        last = step.nodes[-1].split(" + ")[-1].rsplit("/", 1)[-1] if step.nodes else "Copy"
        name = identifier(last)
        return f"{name[0].upper()}{name[1:]}_{number}"

    def _at(self, region: Region) -> str:
        pointer = self._pointer(region.buffer)
        return pointer if region.offset == 0 else f"{pointer} + {self._host(region.offset)}"

    def _at_or_null(self, region: Region | None) -> str:
        return "nullptr" if region is None else self._at(region)

    def _gemm(self, step: Gemm) -> tuple[tuple[str, str], ...]:
        host = self._host

        def operand(name: str, matrix: Matrix) -> list[tuple[str, str]]:
            return [(f"ld{name}", host(matrix.ld)), (f"stride_{name}", host(matrix.batch_stride))]

        values: dict[str, str] = {
            "a": self._at(step.a.region),
            "b": self._at(step.b.region),
            "d": self._at(step.d.region),
            "bias": self._at_or_null(step.bias),
            "m": host(step.m),
            "n": host(step.n),
            "k": host(step.k),
            "batch": host(step.batch),
            **dict(operand("a", step.a) + operand("b", step.b) + operand("d", step.d)),
            "trans_a": str(step.a.transposed).lower(),
            "trans_b": str(step.b.transposed).lower(),
            "alpha": f"{step.alpha.hex()}",
            "beta": f"{step.beta.hex()}",
            "epilogue": f"sofie::Epilogue::{step.epilogue.value}",
            "precision": f"sofie::Precision::{step.precision.value}",
        }
        order = (
            "a b d bias m n k batch lda ldb ldd stride_a stride_b stride_d trans_a trans_b "
            "alpha beta epilogue precision"
        ).split()
        defaults = {
            "bias": "nullptr",
            "batch": "1",
            "stride_a": "0",
            "stride_b": "0",
            "stride_d": "0",
            "trans_a": "false",
            "trans_b": "false",
            "alpha": (1.0).hex(),
            "beta": (0.0).hex(),
            "epilogue": "sofie::Epilogue::kNone",
            "precision": "sofie::Precision::kFloat32",
        }
        return tuple((key, values[key]) for key in order if values[key] != defaults.get(key))

    def _routine(self, step: Routine) -> tuple[tuple[str, str], ...]:
        def option(value: Option) -> str:
            if isinstance(value, bool):
                return str(value).lower()
            return value.hex() if isinstance(value, float) else str(value)

        buffers = {**step.inputs, **step.outputs}
        pointers = {k: "nullptr" if b is None else self._pointer(b) for k, b in buffers.items()}
        sizes = {key: self._host(size) for key, size in step.sizes.items()}
        options = {key: option(value) for key, value in step.options.items()}
        return tuple({**pointers, **sizes, **options}.items())

    def _attention(self, step: Attention) -> str:
        """The arguments of attention, as C++."""
        arguments = {
            "batch": self._host(step.batch.extent),
            "heads": self._host(step.head.extent),
            "key_heads": self._host(step.key_head.extent),
            "rows": self._host(step.row.extent),
            "keys": self._host(step.key.extent),
            "scale": step.scale.hex(),
            "soft_cap": step.soft_cap.hex(),
        }
        members = ", ".join(f".{name} = {value}" for name, value in arguments.items())
        return f"sofie::kernels::AttentionArgs{{{members}}}"

    def _topk(self, step: TopK) -> str:
        """The arguments of a TopK, as C++."""

        def target(buffer: Buffer | None) -> str:
            return "nullptr" if buffer is None else self._pointer(buffer)

        arguments = {
            "values": target(step.values),
            "indices": target(step.indices),
            "axis": self._host(step.along.extent),
            "inner": self._host(step.inner),
            "k": self._host(step.k),
            "largest": str(step.largest).lower(),
            "sorted": str(step.is_sorted).lower(),
        }
        members = ", ".join(f".{name} = {value}" for name, value in arguments.items())
        return f"sofie::kernels::TopKArgs<{step.load.dtype.storage}>{{{members}}}"

    def _used(self, steps: Sequence[Step]) -> list[str]:
        """Declarations of the pointers that some steps use."""
        position = {id(life.buffer): i for i, life in enumerate(self.lifetimes)}
        offset = {id(b): o for b, o in zip(self.weights, self.weight_offsets, strict=True)}
        found: dict[int, tuple[Buffer, bool]] = {}
        for step in steps:
            for buffer in step.reads():
                found.setdefault(id(buffer), (buffer, False))
            for buffer in step.writes():
                found[id(buffer)] = (buffer, True)
        lines = []
        for key, (buffer, written) in found.items():
            name, cpp = self._pointer(buffer), buffer.storage
            if key in offset:
                value = f"reinterpret_cast<const {cpp}*>(weights + {offset[key]})"
                lines.append(f"const {cpp}* const {name} = {value};")
            else:
                constant = "" if written else "const "
                place = f"buffers[{position[key]}]" if key in position else "launch.random_state()"
                value = f"static_cast<{constant}{cpp}*>({place})"
                lines.append(f"{constant}{cpp}* const {name} = {value};")
        return lines

    def _memories(self) -> list[str]:
        """Every buffer: its pointer, type and owner, and its extents as they lie in memory."""

        def line(buffer: Buffer, owner: str) -> str:
            extents = ", ".join(self._host(buffer.shape[axis]) for axis in buffer.order)
            strides = ", ".join(self._host(stride) for stride in buffer.given_strides)
            suffix = f" with strides {{{strides}}}" if strides else ""
            pointer = f"{buffer.storage}* {self._pointer(buffer)}"
            return f"{pointer}: {owner}, [{extents}]{suffix}"

        kinds = {BufferKind.INPUT: "input", BufferKind.OUTPUT: "output"}
        found = []
        for buffer in (life.buffer for life in self.lifetimes):
            kind = kinds.get(buffer.kind)
            found.append(line(buffer, f"{kind} {buffer.name}" if kind else "intermediate"))
        weights = zip(self.weights, self.weight_offsets, strict=True)
        found += [line(b, f"weights + {offset}") for b, offset in weights]
        return found + [line(b, "random state") for b in self.program.states()]

    # The public interface.

    def _interface(self) -> dict[str, object]:
        names = Names()
        inputs = [self._field(names, b, b.shape) for b in self.program.inputs]
        names = Names()
        outputs = [self._field(names, o.buffer, o.shape) for o in self.program.outputs]
        names = Names()
        strides = {s.name for b in self.program.inputs for s in b.given_strides}
        sizes = [
            {
                "id": names.new(called),
                "symbol": called,
                "is_real": symbol.is_real,
                "default": "sofie::kPacked" if symbol.name in strides else "0",
            }
            for symbol, called in zip(self.symbols, self.symbol_names.values(), strict=True)
        ]
        return {
            "inputs": inputs,
            "outputs": outputs,
            "sizes": sizes,
            "has_elements": any(segment.reads for segment in self.segments),
            "strided": [b.name for b in self.program.inputs if b.given_strides],
            "first_strides": [self._first_stride(b) for b in self.program.inputs],
            "input_dims": [self._dim_rows(b.shape) for b in self.program.inputs],
            "output_dims": [self._dim_rows(o.shape) for o in self.program.outputs],
            "c_string": c_string,
            "comment": comment,
        }

    def _field(self, names: Names, buffer: Buffer, shape: dims.Shape) -> _Field:
        dtype = buffer.dtype
        cpp = dtype.packed if buffer.packed else dtype.storage
        name = names.new(buffer.name)
        return _Field(buffer.name, name, cpp, dtype.enum, self._shape_text(shape))

    def _shape_text(self, shape: dims.Shape) -> str:
        names = self.symbol_names

        def text(extent: dims.Expr) -> str:
            whole = dim_text.to_cpp(extent, lambda s: names[s.name]).replace("sofie::", "")
            if len(whole) <= _LONGEST_EXTENT:
                return comment(whole)
            used = sorted((s.name for s in extent.free_symbols), key=list(names).index)
            return comment(f"from {' and '.join(names[name] for name in used)}")

        return f"[{', '.join(map(text, shape))}]"

    def _dim_rows(self, shape: dims.Shape) -> list[str]:
        order = list(self.symbol_names)
        rows = []
        for extent in shape:
            if extent.is_Integer:
                rows.append(f"{{-1, {int(extent)}}}")
            elif (more := extent.as_coeff_Add())[1].is_Symbol and more[0] >= 0:
                rows.append(f"{{{order.index(more[1].name)}, {int(more[0])}}}")
            else:
                rows.append("{-1, -1}")
        return rows

    def _first_stride(self, buffer: Buffer) -> int:
        """The number of the symbol that is an input's first stride; -1 where it is packed."""
        order = list(self.symbol_names)
        return order.index(buffer.given_strides[0].name) if buffer.given_strides else -1

    def _buffer_row(self, lifetime: Lifetime) -> dict[str, object]:
        buffer = lifetime.buffer
        return {
            "name": c_string(buffer.name),
            "size": buffer.dtype.size,
            "per_byte": buffer.dtype.per_byte if buffer.packed else 1,
            "first": lifetime.first,
            "last": lifetime.last,
            "segment": self.segment_of.get(id(buffer), 0),
        }

    def _segment(self, number: int) -> dict[str, object]:
        """What the host does before a segment's steps: reads, conditions, sizes."""
        order = list(self.symbol_names)
        position = {id(life.buffer): i for i, life in enumerate(self.lifetimes)}
        known = {s.name: k for k, g in enumerate(self.segments) for r in g.reads for s in r.symbols}

        reads = [
            {
                "name": c_string(read.name),
                "buffer": position[id(read.buffer)],
                "enum": read.buffer.dtype.enum,
                "first": order.index(read.symbols[0].name),
                "count": len(read.symbols),
                "total": -1 if read.total is None else order.index(read.total.name),
            }
            for read in self.segments[number].reads
        ]
        return {
            "reads": reads,
            "requirements": [
                self._requirement(r)
                for r in self.program.requirements
                if max((known.get(s.name, 0) for s in r.symbols), default=0) == number
            ],
            "buffers": [
                (i, self._host(life.buffer.bytes))
                for i, life in enumerate(self.lifetimes)
                if self.segment_of.get(id(life.buffer), 0) == number
            ],
            "outputs": [
                (i, [self._host(d) for d in output.shape])
                for i, output in enumerate(self.program.outputs)
                if self.segment_of.get(id(output.buffer), 0) == number
            ],
        }

    def _requirement(self, requirement: Requirement) -> dict[str, object]:
        pieces: list[str] = []
        rest = requirement.message
        while rest:
            spots = [(rest.find(f"{{{k}}}"), k) for k in ("low", "high") if f"{{{k}}}" in rest]
            if not spots:
                pieces.append(c_string(rest))
                break
            at, key = min(spots)
            pieces += [c_string(rest[:at]), f"std::to_string({key}.value())"]
            rest = rest[at + len(key) + 2 :]
        return {
            "low": self._host(requirement.low),
            "high": self._host(requirement.high),
            "message": " + ".join(pieces),
            "loops": [(x.var.name, self._host(x.extent)) for x in requirement.loops],
        }

    def _graph_hash(self, texts: Mapping[str, str]) -> bytes:
        digest = hashlib.sha256()
        for file in sorted(texts):
            digest.update(file.encode() + b"\0" + texts[file].encode() + b"\0")
        for weight, name, offset in zip(
            self.weights, self.weight_names, self.weight_offsets, strict=True
        ):
            digest.update(f"{offset} {weight.dtype.name} {weight.shape} {name}\0".encode())
        return digest.digest()

    def _manifest(
        self, interface: Mapping[str, object], views: list[_StepView], graph_hash: bytes
    ) -> bytes:
        def tensors(key: str) -> list[dict[str, str]]:
            fields = interface[key]
            assert isinstance(fields, list)
            return [
                {"name": f.name, "identifier": f.identifier, "dtype": f.cpp, "shape": f.shape}
                for f in fields
            ]

        symbol = self.options.batch.symbol
        content = {
            "generator": f"sofie {sofie.VERSION}",
            "host": dict(self.options.host),
            "name": self.options.name,
            "namespace": self.options.namespace,
            "symbols": list(self.symbol_names.values()),
            "inputs": tensors("inputs"),
            "outputs": tensors("outputs"),
            "graph_hash": graph_hash.hex(),
            "weights_bytes": self.weight_bytes,
            "weights": [
                {
                    "name": name,
                    "dtype": w.dtype.name,
                    "shape": [int(d) for d in w.shape],
                    "offset": o,
                }
                for w, name, o in zip(
                    self.weights, self.weight_names, self.weight_offsets, strict=True
                )
            ],
            "batch": {
                "symbol": None if symbol is None else self.program.symbols[symbol],
                "rows_meet": self.options.batch.refusal,
            },
            "low_rank": [dataclasses.asdict(one) for one in self.options.reduced],
            "steps": [{"nodes": v.nodes, "kernel": v.kernel} for v in views],
            "arena": [
                {
                    "name": lifetime.buffer.name,
                    "dtype": lifetime.buffer.dtype.name,
                    "shape": self._shape_text(lifetime.buffer.shape),
                    "first_step": lifetime.first,
                    "last_step": lifetime.last,
                }
                for lifetime in self.lifetimes
                if lifetime.buffer.kind is BufferKind.TEMPORARY
            ],
            "reads": [
                {
                    "tensor": read.name,
                    "before_step": segment.first,
                    "symbols": read.names(),
                    "waits": read.buffer.kind is not BufferKind.INPUT or position > 0,
                }
                for position, segment in enumerate(self.segments)
                for read in segment.reads
            ],
        }
        return (json.dumps(content, indent=1, ensure_ascii=True) + "\n").encode()
