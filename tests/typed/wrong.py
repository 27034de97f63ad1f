"""What checkers must find: each line with a comment has the error of that code, and no other has one."""

import tenon
from tenon import nn

tenon.no_such_function()  # attr-defined
nn.NoSuchLayer()  # attr-defined
nn.functional.no_such_function()  # attr-defined
tenon.zeros("3")  # arg-type
tenon.ones(2).reshape("a")  # arg-type
tenon.float33  # attr-defined
text: str = tenon.ones(2).sum()  # assignment
nn.Linear(2, "3")  # arg-type
tenon.optim.SGD(nn.Linear(2, 3).parameters(), rate=0.1)  # call-arg
tenon.ones(2).ndim = 1  # misc
tenon.mm(tenon.ones(2, 2), 3)  # arg-type
tenon.add(tenon.ones(2), tenon.ones(2), alpha="1")  # call-overload
nn.functional.softmax(tenon.ones(2), dim="0")  # arg-type
tenon.utils.data.DataLoader([1, 2], batch="4")  # call-arg
