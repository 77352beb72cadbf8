"""Messages of the C++ library go to logging.getLogger("fastgemm"). Imported with the first one."""

import logging


def emit(warning: bool, message: str) -> None:
    """Logs one message; those of set_verbose(True) are shown even where logging is not set up."""
    logger = logging.getLogger("fastgemm")
    if warning:
        logger.warning(message)
        return
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
    logger.info(message)
