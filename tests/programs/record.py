"""Writes recorded.json: what the programs compute on PyTorch, for machines without it. Needs PyTorch and NumPy."""

import json
from pathlib import Path

import torch
from programs import PROGRAMS, run

PATH = Path(__file__).with_name("recorded.json")


def main():
    torch.set_num_threads(1)
    figures = {}
    for program in PROGRAMS:
        result = run(program, torch)
        figures[program.name] = {"losses": result.losses, "state": result.summary()}
    PATH.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
