"""progressbar2 with a timer and an ETA."""

import net
import progressbar

widgets = [
    progressbar.Percentage(),
    " ",
    progressbar.Bar(),
    " ",
    progressbar.Timer(),
    " ",
    progressbar.AdaptiveETA(),
    " ",
    progressbar.FileTransferSpeed(),
]
with progressbar.ProgressBar(max_value=5, widgets=widgets) as bar:
    net.train(epochs=5, each_epoch=lambda epoch, loss: bar.update(epoch))
