"""Tiles through which operands are read whose neighbours lie along another dimension than the lanes.

for each tile of rows and columns:
    for each column of the tile:        its part of the operand, as it lies in memory, into a buffer
    for each row of the tile:           the columns in lanes, from the buffer
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xarr.compiler.loop_ir.loops import Affine, Buffer, Loop, Runs, Store, index_value, load
from xarr.compiler.loop_ir.scalars import Value, Values


@dataclass
class Tiles:
    """Where elements are read from a tile: `inside` is the loop over tiles, `row` and `column` those in one.

    side: the rows and columns of a tile, those at the ends apart; max_bytes: of all local buffers.
    """

    values: Values
    side: int
    max_bytes: int
    locals: list[Buffer]
    inside: Loop
    row: Loop
    column: Loop
    known: dict[tuple[Buffer, Affine], Value] = field(default_factory=dict)

    def read(self, buffer: Buffer, offset: Affine) -> Value | None:
        """The element at an offset, by way of a tile if that is how it is read in order."""
        factors = dict(offset.terms)
        if factors.get(self.row.index) != 1 or factors.get(self.column.index, 0) in (-1, 0, 1):
            return None
        key = (buffer, offset)
        if key not in self.known:
            tile = Buffer(f"tile{len(self.locals)}", buffer.dtype, self.side * self.side, "local")
            if tile.nbytes + sum(each.nbytes for each in self.locals) > self.max_bytes:
                return None
            self.locals.append(tile)
            self.inside.body.insert(len(self.known), self._fill_tile(tile, buffer, offset))
            own = Affine(((self.column.index, self.side), (self.row.index, 1)))
            self.known[key] = load(self.values, tile, own)
        return self.known[key]

    def _fill_tile(self, tile: Buffer, buffer: Buffer, offset: Affine) -> Loop:
        column = Loop(index_value(self.values, "column"), self.column.extent)
        row = Loop(index_value(self.values, "row"), self.row.extent, Runs.LANES)
        other = {self.column.index: column.index, self.row.index: row.index}
        source = Affine(
            tuple((other.get(value, value), factor) for value, factor in offset.terms), offset.constant
        )
        target = Affine(((column.index, self.side), (row.index, 1)))
        row.body.append(Store(tile, target, load(self.values, buffer, source)))
        column.body.append(row)
        return column
