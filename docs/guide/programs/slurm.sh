#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=1G
# Counts the rows of a table and sums a column: each task reads some of the row groups, by a mount of its own.
#
#     sbatch slurm.sh run.h5 run_042 energy
#
# The file, and the folder where this is submitted, are on a file system that all nodes share.
set -euo pipefail
source=$1 table=$2 column=$3
learnt=$PWD/hepfs-$SLURM_JOB_ID.learnt
trap 'rm -f "$learnt"' EXIT

hepfs prepare "$source" --export "$learnt"

# shellcheck disable=SC2016
part='
import os, sys
import pyarrow.compute, pyarrow.parquet
path, column = sys.argv[1:]
file = pyarrow.parquet.ParquetFile(path)
mine = range(int(os.environ["SLURM_PROCID"]), file.num_row_groups, int(os.environ["SLURM_NTASKS"]))
values = file.read_row_groups(mine, [column])[column]
print(len(values), pyarrow.compute.sum(values).as_py() or 0)
'
srun hepfs run --learnt "$learnt" --cache-size 256M "$source" -- \
    python3 -c "$part" "{mount}/$table/table.parquet" "$column" |
    awk '{ rows += $1; sum += $2 } END { printf "%d rows; in all %.17g\n", rows, sum }'
