"""The attributes of `torch.Tensor` that are read here; torch itself is never imported for it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


class TorchDType(Protocol):
    """The attributes of `torch.dtype` that are read here."""

    is_floating_point: bool


@runtime_checkable
class TorchTensor(Protocol):
    """A tensor, for `isinstance`, which checks that all of these attributes exist."""

    @property
    def dtype(self) -> TorchDType: ...
    @property
    def device(self) -> Any: ...

    def detach(self) -> TorchTensor: ...
    def cpu(self) -> TorchTensor: ...
    def double(self) -> TorchTensor: ...
    def view(self, dtype: object) -> TorchTensor: ...
    def numpy(self, *, force: bool = False) -> Any: ...
