"""Objects and arrays on disk.

A saved directory holds two files:

    about.json               JSON: a digest of itself, the name and digest of the other file, and what was saved
    arrays-….safetensors     all arrays, named by their place in the object

`arrays` writes and reads this pair. Each file is written under a temporary name and renamed, `about.json` last, so the
directory always holds one complete save, also after a crash. A changed byte in either file is detected. `locking`
keeps a second writer out; readers need no lock.

`objects` turns an object into such a pair and back. A dataclass (an equinox module is one) becomes

    {"class": "vae/1", "fields": {"latent": 1, "context": {"array": "models.context"}, …}}

where "vae/1" is a tag of `tags`, which has a version and does not change when the class moves to another module.
Loading rebuilds objects field by field; it runs no constructor and imports nothing that the file names. `verify` then
checks types, shapes and finiteness against the annotations of the class. Objects around functions, such as policies
that are code, are saved by name only.

Everything that is wrong with the content of a file is one exception, `FileError`, which names the file, the field and
the problem (`reading` bounds what is read before it is parsed). `pretrained` loads the weights that come with the
package.
"""

from ggpi.storage.errors import FileError
from ggpi.storage.locking import InUseError

__all__ = ["FileError", "InUseError"]
