from .collection import Collection as Collection
from .collection import open_collection as open_collection
from .database import open_database as open_database
from .demo import collect_demo as collect_demo
from .experiment import collect as collect
from .server import app as app
from .settings import CollectSettings as CollectSettings
