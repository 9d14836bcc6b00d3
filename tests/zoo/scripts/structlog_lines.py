"""structlog with its console renderer, and as JSON with a time."""

import net
import structlog

log = structlog.get_logger()
net.train(each_epoch=lambda epoch, loss: log.info("epoch", number=epoch, loss=round(loss, 4)))
structlog.configure(processors=[structlog.processors.TimeStamper(fmt="iso"), structlog.processors.JSONRenderer()])
structlog.get_logger().info("done", epochs=3)
