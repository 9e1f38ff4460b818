"""What kafka-python's test fixtures want of a server that runs already."""

from __future__ import annotations


class ExternalService:
    """A server that somebody else starts and stops."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def open(self) -> None:
        """It is open."""

    def close(self) -> None:
        """It stays open."""

    def dump_logs(self) -> None:
        """Its logs are elsewhere."""

    def wait_for(self, pattern: str, timeout: float = 0) -> bool:
        """Whether its log has said `pattern`; the server is up before the tests begin."""
        return True


class SpawnedService:
    """A server that a test starts itself; there is nothing here that could be started."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise RuntimeError("no server can be started here")
