"""Settings, diagnostics, errors and the event stream: what every layer may use."""
