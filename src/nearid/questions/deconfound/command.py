"""`nearid deconfound`."""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.deconfound.run:deconfound",
    {"X": "X"},
    summary="Biology or batch? Classify perturbations in held-out batches, from the embedding and from its "
    "independent components.",
    required=("labels", "batches"),
    short={"out": "-o"},
    done=lambda options: (
        f"Cleaned rows written to {options['out']}" if options["out"] and not options["dry_run"] else ""
    ),
    page="guide/deconfound",
    examples=(
        "nearid deconfound profiles.csv --labels drug --batches plate",
        "nearid deconfound x.npy --meta wells.csv --labels drug --batches plate",
        "nearid deconfound profiles.csv --labels drug --batches plate -o cleaned.csv",
        "nearid deconfound cells.h5ad --labels gene --batches donor --blocks well",
        "nearid deconfound wells.csv --labels drug --batches plate --also harmony=Z.npy",
    ),
    texts={
        "labels": "Column with the perturbation of each row.",
        "batches": "Column with the batch of each row, such as its plate, donor or site.",
        "meta": "Table with the columns of --labels, --batches and --blocks. Rows are paired by position, or by --ids. "
        "Default: the table X, or obs of an .h5ad file.",
        "ids": "Column of X and of --meta that holds row ids. Rows with the same id are paired.",
        "features": 'Columns of the table X to use: names or patterns such as "emb_*", separated by commas. Default: '
        "numeric columns other than labels, batches, blocks and those that look like metadata.",
        "out": "Write the rows without their technical components to this file, and the model to NAME.model. A table "
        "or .h5ad keeps all else.",
        "drop": "Batch components to drop: auto (batch share of at least 5%, above that of the label, significant), a "
        "number of them, or a share. Default with -o: auto.",
        "also": "A corrected embedding by its name, as harmony=Z.npy; repeat for several. It is judged on the same "
        "rows and splits. For an .h5ad file also an entry of obsm, as scvi=X_scVI.",
        "position": "Column with names of wells such as B07, or two columns: row,column. Adds what the position on the "
        "plate explains of each component.",
        "top": "Numbers k, separated by commas, such as 5,10,20. For each one nearid compares the AUROC from the k "
        "most used components with the AUROC from all others, by two more classifiers for every one. Default: none.",
    },
)
