"""A bar of click, and its colors."""

import click
import net


@click.command()
@click.option("--epochs", default=5)
def main(epochs):
    with click.progressbar(length=epochs, label="training", show_pos=True, show_eta=True) as bar:
        net.train(epochs, lambda epoch, loss: bar.update(1))
    click.secho("done", fg="green", bold=True)


main()
