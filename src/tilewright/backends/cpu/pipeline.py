"""The passes between the frontend's tile IR and CPU code, in order: read this first."""
