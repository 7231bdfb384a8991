"""SFARM's Table 2: nats of binarised MNIST, every method at equal seconds; and Fashion-MNIST in 8 bits.

    python -m experiments.sfarm.table2 --out RUN --seconds 300                       static: one-pass, ARDM, MAC, SFARM
    python -m experiments.sfarm.table2 --out RUN --set dynamic --seconds 300         the dynamic protocol
    python -m experiments.sfarm.table2 --out RUN --methods sfarm-paper --orders 8    the paper's 0.34 M, 300 epochs
    python -m experiments.sfarm.table2 --out RUN --set fashion --seconds 300         8 bits, logistics

One-pass is scored exactly in one pass in the raster order, and as the equal mixture of the eight scans, exact too.
ARDM and SFARM are scored by the stratified bound over random orders (mode random for SFARM), with its standard error,
and with --orders K by the bound and the estimate of K whole orders on some rows; MAC by steps of its own chain, and
with --orders by the whole of it. Validation rows choose the checkpoint.
"""

from experiments.sfarm.picture_scores import joint_scores
from experiments.sfarm.pictures import load, parser_of, trained, write


def main() -> None:
    sets, methods = ("static", "dynamic", "fashion", "mnist"), ("one-pass", "ardm", "mac", "sfarm")
    arguments = parser_of(__doc__, sets=sets, methods=methods).parse_args()
    data = load(arguments)
    found = {}
    for method in arguments.methods:
        model = trained(method, data, arguments)
        found[method] = joint_scores(method, model, data, arguments)
        line = found[method]
        print(f"{method}: {line['nats']:.3f} +- {line['stderr']:.3f} nats ({line['kind']})", flush=True)
        write(arguments, f"table2_{arguments.set}", {"rows": len(data.test), "methods": found})


if __name__ == "__main__":
    main()
