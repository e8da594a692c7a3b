"""The one resource of the assets: a thin shell that hands out plain objects.

Holds: ``AlphaIdResource``. Refuses: anything that the plain objects do themselves. Configuration is resolved
when a run asks for it, never at import, so that the UI shows the graph whatever the configuration says.
"""

from typing import Any

import dagster as dg

from alpha_id_runtime.config import Config, resolve
from alpha_id_runtime.layout import StorageLayout


class AlphaIdResource(dg.ConfigurableResource[Any]):
    """Hands out the configuration that holds and the storage layout.

    Attributes:
        settings: values laid over file and environment, by "section.key" as ``alpha-id config`` lists them.
    """

    settings: dict[str, Any] = {}  # noqa: RUF012 -- a field of the resource's schema, copied by pydantic

    def config(self) -> Config:
        """Return the configuration: file, environment, then ``settings``.

        Raises:
            ConfigError: a value that is not one.
        """
        return resolve().with_flags(self.settings).config

    def storage(self) -> StorageLayout:
        """Return the layout of the storage folder in use."""
        return StorageLayout(self.config().storage)
