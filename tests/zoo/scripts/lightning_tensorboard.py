"""Lightning with TensorBoardLogger, ModelCheckpoint and the simple profiler."""

import lightning
import net
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, Timer
from lightning.pytorch.loggers import TensorBoardLogger


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = net.make_model()

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


lightning.seed_everything(0)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*net.make_data()), 32)
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=TensorBoardLogger("."),
    log_every_n_steps=1,
    callbacks=[ModelCheckpoint(monitor="val_loss", save_last=True), Timer()],
    profiler="simple",
    enable_progress_bar=False,
)
trainer.fit(Classifier(), loader, loader)
