"""What the differences of an operator say of a device: kinds of differences, and the faults that they show."""

#: How a call can differ from the CPU's. Kinds of samples are kinds of their own, where only values differ: the strides of
#: arguments, what is special about their values, dtypes that meet.
KINDS = {
    "values": "plain, contiguous tensors",
    "offset": "contiguous tensors that begin inside of their storage",
    "transposed": "arguments of permuted strides",
    "expanded": "arguments with strides of 0",
    "negative": "arguments with negative strides",
    "sliced": "arguments with gaps and an offset",
    "channels_last": "arguments in channels_last",
    "overlapping": "arguments whose elements share places",
    "empty": "arguments of no elements",
    "zero_dim": "arguments of no dimensions",
    "special": "infinities, zeros with signs, the smallest and largest numbers",
    "promotion": "arguments of different dtypes",
    "large": "tensors of thousands of elements",
    "edges": "as many elements as blocks of kernels have, or one more or less",
    "dimensions": "five dimensions that cannot be merged",
    "nan": "a NaN is lost",
    "bits": "not the CPU's bits, where they are promised",
    "results": "the number of results",
    "dtype": "the dtype of a result",
    "shape": "the shape of a result",
    "strides": "the strides of a result",
    "identity": "a written argument is not what is returned",
    "arguments": "the geometry of an argument has changed",
    "around": "memory around an argument has changed",
    "out size": "out= has not been resized",
    "out strides": "out= that is not contiguous",
    "aliasing": "arguments that share memory",
    "order": "work does not run in the order of its stream",
    "remembered": "the same tensors with other values",
    "streams": "two streams at once",
    "memory": "memory that is held after a call",
    "index": "the second device of the plug-in",
    "lifetime": "memory is used after it went back",
    "gradient": "gradients",
    "gradient strides": "gradients, where the incoming one is not contiguous",
    "second gradient": "gradients of gradients",
    "error": "an error where the CPU has none, or another one",
    "not refused": "a result where the CPU has an error",
    "claim": "served by claim, and refused or left to the CPU",
    "table": "a function of the table",
    "regions": "programs that plans of graphs make of several operators",
    "crash": "the process died",
    "failure": "the device fails: the kit could not go on",
}

#: What mostly makes a process die, the likeliest last in the order of writing a device.
CRASH = ("it crashes: the host reads an address of the device, work that runs later uses a launch or host memory that is gone "
         "(KeptLaunch, TENON_COPY_HOST_STAYS), a wait returns too early, or memory was handed out twice")  # fmt: skip

#: What is the matter where only values of some kinds of samples are wrong; the first that is shown explains the others.
_PLACES = (
    ({"transposed", "expanded"}, "it takes tensors to be contiguous"),
    ({"offset"}, "it loses the storage offset"),
    ({"negative"}, "it reads negative strides as positive"),
    ({"sliced", "channels_last"}, "it reads some strides wrongly"),
    ({"large"}, "it leaves out elements of large tensors"),
    ({"edges"}, "it computes the last elements of some sizes wrongly: multiples of 256, or one more or less"),
    ({"dimensions"}, "it takes fewer than five dimensions"),
)


def faults_of(kinds):
    """What is the matter, in words, for the kinds of differences of one operator; the plainest explanation of each."""
    kinds, found = set(kinds), []
    if "remembered" in kinds:  # which shows in whatever comes after the first call
        return ["it returns what an earlier call has computed, by address or size"]
    if "gradient" in kinds:
        kinds -= {"gradient strides", "second gradient"}  # which follow from it
    if "values" not in kinds:
        found += [text for shown, text in _PLACES if kinds & shown][:1]
    for kind, text in (
        ("values", "its values are wrong"),
        ("dtype", "its results have another dtype: wrong promotion"),
        ("crash", CRASH),
        ("order", "it does not run in stream order"),
        ("streams", "two streams share its scratch memory"),
        ("memory", "it keeps tensors of its calls: some reference to an argument or a result is not released"),
        ("index", "it takes the first device for the second"),
        ("lifetime", "it uses memory after it went back, on another stream without record_stream"),
        ("strides", "its results have other strides"),
        ("aliasing", "it ignores that arguments share memory"),
        ("out size", "it does not resize out="),
        ("out strides", "it takes out= to be contiguous, and to begin its storage"),
        ("nan", "it loses NaN"),
        ("gradient strides", "it reads strides of incoming gradients wrongly"),
        ("gradient", "its gradients are wrong"),
        ("second gradient", "the gradients of its gradients are wrong"),
        ("table", "a function of its table does not keep what the interface says"),
        ("regions", "it runs programs of several operators wrongly"),
        ("claim", "it claims what it does not serve"),
        ("bits", "it rounds where the CPU does not, or not where it does"),
    ):
        if kind in kinds and not (kind == "out strides" and found):
            found.append(text)
    return found or [KINDS[k] for k in sorted(kinds)]
