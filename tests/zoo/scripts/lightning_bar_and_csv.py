"""Lightning with its bar, CSVLogger and a checkpoint for each epoch."""

import lightning
import net
import torch
from lightning.pytorch.loggers import CSVLogger


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = net.make_model()

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


lightning.seed_everything(0)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*net.make_data()), 32, shuffle=True)
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=CSVLogger("logs"), log_every_n_steps=1)
trainer.fit(Classifier(), loader)
