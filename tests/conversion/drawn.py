"""Random conversion graphs of all kinds of ops, small enough for exhaustive search."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.rules.op import Op

WEIGH = "test::Weigh"
"""An op that nothing is known of; its result depends on the order of axes."""


class Drawing:
    """A graph that grows at random.

    Parameters
    ----------
    seed
        Equal seeds give equal graphs.
    most
        How many ops it has at most.
    ranks
        Numbers of axes of its inputs.
    sizes
        Sizes of axes; if all are equal, tensors meet their own transposes often.
    repeated
        The share of ops that stand there twice, one behind the other.
    """

    def __init__(
        self,
        seed: int,
        most: int = 12,
        ranks: tuple[int, ...] = (2, 3, 3),
        sizes: tuple[int, ...] = (1, 2, 2, 3, 3, 4),
        repeated: float = 0.0,
    ) -> None:
        self.sizes, self.repeated = sizes, repeated
        self.draw = random.Random(seed)
        self.graph = ConversionGraph(f"drawn {seed}")
        self.live: list[str] = []
        self.constants: list[str] = []
        for n in range(self.draw.randint(1, 2)):
            shape = self._sizes(self.draw.choice(ranks))
            size = self.draw.choice([1, 2, 4])
            self.live.append(self.graph.input(f"x{n}", shape, element_bytes=size))
        kinds = [kind for kind, often in KINDS.items() for _ in range(often)]
        while len(self.graph.ops) < most:
            self.draw.choice(kinds)(self)
        read = {name for op in self.graph.ops for name in op.inputs}
        ends = [name for op in self.graph.ops for name in op.outputs if name not in read]
        self.graph.output(*ends)
        others = [name for name in self.live if name not in ends]
        if others and self.draw.random() < 0.3:
            self.graph.output(self.draw.choice(others))

    def _sizes(self, rank: int) -> tuple[int, ...]:
        return tuple(self.draw.choice(self.sizes) for _ in range(rank))

    def _pick(self, rank: int | None = None) -> str | None:
        """Return a tensor, more likely a late one."""
        fits = [n for n in self.live if rank is None or len(self._shape(n)) == rank]
        if not fits:
            return None
        recent = fits[-4:] if self.draw.random() < 0.7 else fits
        return self.draw.choice(recent)

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(int(size) for size in self.graph.tensors[name].shape or ())  # type: ignore[arg-type]

    def _constant(self, shape: tuple[int, ...]) -> str:
        """Return a constant, often one that is there already."""
        same = [name for name in self.constants if self._shape(name) == shape]
        if same and self.draw.random() < 0.7:
            return self.draw.choice(same)
        self.constants.append(self.graph.constant(f"c{len(self.constants)}", shape))
        return self.constants[-1]

    def _add(self, type: str, *inputs: str, **attributes: object) -> None:
        for _ in range(2 if self.repeated and self.draw.random() < self.repeated else 1):
            self.live.append(self.graph.op(type, inputs, attributes))

    def transpose(self) -> None:
        """Add a transpose, of a constant at times."""
        name = self._pick()
        if self.constants and self.draw.random() < 0.15:
            name = self.draw.choice(self.constants)
        if name and len(self._shape(name)) > 1:
            order = list(range(len(self._shape(name))))
            self.draw.shuffle(order)
            self._add("Transpose", name, perm=tuple(order))

    def wrapped(self) -> None:
        """Add an op that takes one layout between two transposes, as exporters write them."""
        if name := self._pick(3):
            order = self.draw.choice([(0, 2, 1), (1, 2, 0), (2, 1, 0)])
            back = tuple(sorted(range(3), key=order.__getitem__))
            self._add("Transpose", name, perm=order)
            weights = self._constant((self._shape(self.live[-1])[1],) * 2 + (1,))
            self._add("Conv", self.live[-1], weights)
            self._add("Transpose", self.live[-1], perm=back)

    def elementwise(self) -> None:
        """Add an op of one tensor."""
        if name := self._pick():
            self._add("Neg", name)

    def add(self) -> None:
        """Add two tensors, the second perhaps broadcast, a constant or the first transposed."""
        if not (name := self._pick()):
            return
        shape = self._shape(name)
        fits = [n for n in self.live if _broadcasts(self._shape(n), shape)]
        if self.draw.random() < 0.4:
            ends = shape[self.draw.randint(0, len(shape)) :]
            sizes = tuple(1 if self.draw.random() < 0.3 else size for size in ends)
            other = self._constant(sizes)
        else:
            other = self.draw.choice(fits)
        pair = [name, other]
        self.draw.shuffle(pair)
        self._add(self.draw.choice(["Add", "Mul"]), *pair)

    def concat(self) -> None:
        """Join tensors that differ along one axis at most."""
        if not (name := self._pick()) or not self._shape(name):
            return
        shape = self._shape(name)
        axis = self.draw.randrange(len(shape))
        fits = [n for n in self.live if _but(self._shape(n), axis) == _but(shape, axis)]
        others = [self.draw.choice(fits) for _ in range(self.draw.randint(1, 2))]
        self._add("Concat", name, *others, axis=axis)

    def reduce(self) -> None:
        """Add over axes, kept or not."""
        if (name := self._pick()) and (rank := len(self._shape(name))):
            axes = self.draw.sample(range(rank), self.draw.randint(1, min(rank, 2)))
            keep = self.draw.randint(0, 1)
            self._add("ReduceSum", name, axes=tuple(axes), keepdims=keep)

    def softmax(self) -> None:
        """Add an op along an axis."""
        if (name := self._pick()) and (rank := len(self._shape(name))):
            self._add("Softmax", name, axis=self.draw.randrange(-rank, rank))

    def split(self) -> None:
        """Cut a tensor in two."""
        name = self._pick()
        shape = self._shape(name) if name else ()
        wide = [axis for axis, size in enumerate(shape) if size % 2 == 0]
        if not name or not wide:
            return
        axis, number = self.draw.choice(wide), len(self.graph.ops)
        half = tuple(size // 2 if i == axis else size for i, size in enumerate(shape))
        op = Op(
            "Split",
            {"axis": axis, "num_outputs": 2},
            (name,),
            (f"left{number}", f"right{number}"),
            output_shapes=(half, half),
            name=f"split{number}",
        )
        self.live += self.graph.add(op)

    def pad(self) -> None:
        """Put zeros around a tensor."""
        if (name := self._pick()) and (shape := self._shape(name)):
            pads = [self.draw.randint(0, 1) for _ in range(2 * len(shape))]
            if sum(shape) < 10:
                self._add("Pad", name, pads=tuple(pads))

    def reshape(self) -> None:
        """Merge two neighbouring axes, or split one, or add and take away axes of size 1."""
        name = self._pick()
        shape = self._shape(name) if name else ()
        if not name or not shape:
            return
        at = self.draw.randrange(len(shape))
        if self.draw.random() < 0.5 and at + 1 < len(shape):
            sizes = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
        elif shape[at] % 2 == 0 and len(shape) < 4:
            sizes = (*shape[:at], 2, shape[at] // 2, *shape[at + 1 :])
        else:
            ones = [size for size in shape if size != 1]
            sizes = (*ones[:at], 1, *ones[at:]) if len(ones) < 3 else tuple(ones)
        self._add("Reshape", name, shape=sizes)

    def flatten(self) -> None:
        """Make a matrix."""
        if (name := self._pick()) and (shape := self._shape(name)):
            self._add("Flatten", name, axis=self.draw.randint(0, len(shape)))

    def squeeze(self) -> None:
        """Take away an axis of size 1, or add one."""
        if not (name := self._pick()):
            return
        shape = self._shape(name)
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        if ones:
            self._add("Squeeze", name, axes=(self.draw.choice(ones),))
        elif len(shape) < 4:
            self._add("Unsqueeze", name, axes=(self.draw.randint(0, len(shape)),))

    def gather(self) -> None:
        """Pick along an axis by indices of one axis, or two."""
        name = self._pick()
        shape = self._shape(name) if name else ()
        wide = [axis for axis, size in enumerate(shape) if size > 1]
        if name and wide and len(shape) < 4:
            name_of = f"i{len(self.graph.ops)}"
            sizes = self.draw.choice([(2,), (2, 1), (2, 2)])
            indices = self.graph.constant(name_of, sizes, element_bytes=8)
            self._add("Gather", name, indices, axis=self.draw.choice(wide))

    def matmul(self) -> None:
        """Multiply by a constant matrix."""
        name = self._pick()
        if name and len(self._shape(name)) > 1:
            weights = self._constant((self._shape(name)[-1], 2))
            self._add("MatMul", name, weights)

    def gemm(self) -> None:
        """Multiply a matrix by a constant one."""
        if name := self._pick(2):
            flag = self.draw.randint(0, 1)
            rows = self._shape(name)[1 - flag]
            self._add("Gemm", name, self._constant((rows, 3)), transA=flag)

    def einsum(self) -> None:
        """Multiply by constants and add over an axis, in an order of letters."""
        if name := self._pick(self.draw.choice([2, 3])):
            shape = self._shape(name)
            letters = "abc"[: len(shape)]
            other, left = self.draw.sample(letters, 2), self.draw.sample(letters, 2)
            sizes = tuple(shape[letters.index(letter)] for letter in other)
            equation = f"{letters},{''.join(other)}->{''.join(left)}"
            self._add("Einsum", name, self._constant(sizes), equation=equation)

    def conv(self) -> None:
        """Add a convolution, which takes its operands as they are."""
        if name := self._pick(3):
            channels = self._shape(name)[1]
            weights = self._constant((self.draw.choice([2, 3]), channels, 1))
            self._add("Conv", name, weights)

    def opaque(self) -> None:
        """Add an op that nothing is known of."""
        if name := self._pick():
            self.live.append(self.graph.op(WEIGH, [name], shape=self._shape(name)))


KINDS: dict[Callable[[Drawing], None], int] = {
    Drawing.transpose: 6,
    Drawing.wrapped: 5,
    Drawing.elementwise: 3,
    Drawing.add: 5,
    Drawing.concat: 3,
    Drawing.reduce: 2,
    Drawing.softmax: 2,
    Drawing.split: 2,
    Drawing.pad: 1,
    Drawing.reshape: 3,
    Drawing.flatten: 1,
    Drawing.squeeze: 2,
    Drawing.gather: 1,
    Drawing.matmul: 1,
    Drawing.gemm: 1,
    Drawing.einsum: 1,
    Drawing.conv: 2,
    Drawing.opaque: 2,
}


def drawn(seed: int, most: int = 12, **settings: Any) -> ConversionGraph:
    """Return a random graph; see :class:`Drawing`."""
    return Drawing(seed, most, **settings).graph


def _broadcasts(sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    if len(sizes) > len(shape):
        return False
    ends = shape[len(shape) - len(sizes) :]
    return all(a == b or 1 in (a, b) for a, b in zip(sizes, ends, strict=True))


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (len(shape), *shape[:axis], *shape[axis + 1 :])
