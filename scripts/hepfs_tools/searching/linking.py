"""Tables whose links between columns and search indexes are not as they should be."""

import h5py
import numpy as np

from hepfs_tools.hep001.write import refs

from . import making
from .making import APRIL, JULY
from .sources import link

LINKS = []


def links(column, revision, rule, **verdicts):
    """Registers a table; `verdicts` are those of its indexes by name."""

    def register(build):
        LINKS.append(
            (build.__name__, column, revision, rule, {name: said.split() for name, said in verdicts.items()}, build)
        )
        return build

    return register


def second_column(group, source):
    """A column `w` that holds what `v` holds, in reverse."""
    return group.create_dataset("w", data=np.frombuffer(b"".join(reversed(source.stored)), source.type_id.dtype))


@links("i64", JULY, "two columns have the same index", index="absent")
def two_columns(group, column, under, source):
    index = making.write_index(under, "index", making.minmax(source, JULY), source, JULY)
    for each in (column, second_column(group, source)):
        link(each, JULY.forward, index)


@links("i64", APRIL, "an index names two columns, and both name it", index="absent")
def two_columns_of_april(group, column, under, source):
    index = making.write_index(under, "index", making.minmax(source, APRIL), source, APRIL)
    other = second_column(group, source)
    for each in (column, other):
        link(each, APRIL.forward, index)
    link(index, APRIL.back, column, other)


@links("i64", JULY, "the index is that of another column", index="broken")
def of_another_column(group, column, under, source):
    index = making.write_index(under, "index", making.sorted_rows(source, JULY), source, JULY)
    link(second_column(group, source), JULY.forward, index)


@links("i64", JULY, "no column names the index", index="absent")
def of_no_column(group, column, under, source):
    making.write_index(under, "index", making.minmax(source, JULY), source, JULY)


@links("i64", APRIL, "the index names a column that does not name it", index="absent")
def one_sided(group, column, under, source):
    index = making.write_index(under, "index", making.minmax(source, APRIL), source, APRIL)
    link(index, APRIL.back, column)


@links("i64", APRIL, "a column names an index that does not name it", index="absent valid")
def one_sided_forth(group, column, under, source):
    index = making.write_index(under, "index", making.minmax(source, APRIL), source, APRIL)
    link(column, APRIL.forward, index)


@links("i64", JULY, "the index does not lie in SEARCH_INDEXES", outside="absent")
def outside_of_the_group(group, column, under, source):
    index = making.write_index(
        group.parent, group.name.rsplit("/", 1)[-1] + "_outside", making.minmax(source, JULY), source, JULY
    )
    link(column, JULY.forward, index)


@links("u8", JULY, "VALUES is the column itself", index="absent")
def values_are_the_column(group, column, under, source):
    index = making.write_index(under, "index", making.bitmap(source, JULY), source, JULY)
    link(column, JULY.forward, index)
    index.attrs.create("VALUES", column.ref, dtype=h5py.ref_dtype)


@links("i64", JULY, "the table has no GENERATION", index="stale absent")
def table_without_generation(group, column, under, source):
    index = making.write_index(under, "index", making.minmax(source, JULY), source, JULY)
    link(column, JULY.forward, index)
    del group.attrs["GENERATION"]


@links("i64", JULY, "rows were appended and neither NROWS nor GENERATION told so", index="valid")
def rows_in_reserve(group, column, under, source):
    # `start` wrote them.
    index = making.write_index(under, "index", making.minmax(source, JULY), source, JULY)
    link(column, JULY.forward, index)


@links("i64", JULY, "one of two indexes is broken", right="valid", wrong="broken")
def one_of_two(group, column, under, source):
    right = making.write_index(under, "right", making.sorted_rows(source, JULY), source, JULY)
    wrong = making.minmax(source, JULY)
    wrong.data["max"][2] = wrong.data["min"][2]
    link(column, JULY.forward, making.write_index(under, "wrong", wrong, source, JULY), right)


# Last, lest something else comes to lie where these references lead.


@links("u8", JULY, "VALUES leads nowhere", index="absent")
def values_gone(group, column, under, source):
    index = making.write_index(under, "index", making.bitmap(source, JULY), source, JULY)
    link(column, JULY.forward, index)
    del under["index__values"]


@links("i64", JULY, "a column names nothing, a null reference, itself and a right index", index="valid")
def links_to_nothing(group, column, under, source):
    index = making.write_index(under, "index", making.minmax(source, JULY), source, JULY)
    gone = under.create_dataset("gone", data=1)
    column.attrs[JULY.forward] = refs(gone, None, column, index)
    del under["gone"]
