"""Train methods on pictures and stop there: what the scripts with the same --out and set then find and only score.

    python -m experiments.sfarm.train_pictures --out RUN --set static --methods sfarm --seconds 40

With ANYFILL_TURN, the name of a file, several may be started side by side, one for each method: they read and compile
together, and train one after the other (``experiments.where.turn``).
"""

from experiments.sfarm.pictures import load, parser_of, trained


def main() -> None:
    sets = ("static", "dynamic", "fashion", "mnist", "cifar10")
    arguments = parser_of(__doc__, sets=sets, methods=("one-pass", "ardm", "mac", "sfarm")).parse_args()
    data = load(arguments)
    for method in arguments.methods:
        trained(method, data, arguments)


if __name__ == "__main__":
    main()
