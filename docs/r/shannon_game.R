# Read what a run of shannon-game wrote. Needs R 4; read_posterior needs the packages ncdf4 and posterior
# (Debian: r-cran-ncdf4, r-cran-posterior).

# Every table of a run's folder, by its name without ".csv": $table, $items, $participants, $notes, ...
read_run <- function(folder) {
  files <- list.files(folder, pattern = "\\.csv$", full.names = TRUE)
  if (length(files) == 0) stop(folder, " has no table: is it the folder of a run?")
  # names of participants may be numbers too long for R, and words may be "NA" or "T": texts stay texts
  texts <- c("participant", "item", "player", "context", "target", "text", "name", "label", "model", "document")
  read <- function(file) {
    header <- names(read.csv(file, nrows = 1, check.names = FALSE))
    kept <- intersect(texts, header)
    table <- read.csv(file, check.names = FALSE, encoding = "UTF-8", na.strings = "",
                      colClasses = setNames(rep("character", length(kept)), kept))
    for (column in names(table)) {
      # Python writes True and False
      if (identical(sort(setdiff(unique(table[[column]]), NA)), c("False", "True")) ||
          all(table[[column]] %in% c("True", "False"))) table[[column]] <- table[[column]] == "True"
    }
    table
  }
  setNames(lapply(files, read), sub("\\.csv$", "", basename(files)))
}

# Surprisal of sentences under language models, as the tables of +exp=surprisal ($words, $tokens, ...): of a data frame
# with a column of texts, and perhaps one of ids. More settings follow, such as "study.regions=|" for $regions.
surprisal <- function(sentences, models = "smollm2", ..., text = "text", id = NULL, python = "python") {
  ask("surprisal", sentences, models, id, paste0("study.text_field=", text), ..., python = python)
}

# Accuracy of language models on minimal pairs, as the tables of +exp=minimal_pairs ($table, $pairs): of a data frame with
# columns good and bad, and perhaps one of ids. More settings follow, such as "study.prefix=COLUMN".
minimal_pairs <- function(pairs, models = "smollm2", ..., id = NULL, python = "python") {
  ask("minimal_pairs", pairs, models, id, ..., python = python)
}

# The tables of a run on a data frame, in a temporary folder.
ask <- function(experiment, rows, models, id, ..., python) {
  folder <- tempfile(experiment)
  dir.create(folder)
  write.csv(rows, file.path(folder, "rows.csv"), row.names = FALSE, na = "", fileEncoding = "UTF-8")
  settings <- c(paste0("+exp=", experiment), paste0("study.path=", folder, "/rows.csv"),
                if (!is.null(id)) paste0("study.id_field=", id), paste0("model=[", paste(models, collapse = ","), "]"),
                paste0("hydra.run.dir=", folder, "/run"), "output.print=false", ...)
  # R's libraries are not those of Python
  status <- system2(python, c("-m", "shannon_game", shQuote(settings)), env = "LD_LIBRARY_PATH=")
  if (status != 0) stop("the run ended with exit code ", status)
  read_run(file.path(folder, "run"))
}

# A table of items with a column gap_nats_PLAYER (or another stem) for every player, as one row an item and player.
long_items <- function(items, stem = "gap_nats_") {
  columns <- grep(paste0("^", stem), names(items), value = TRUE)
  parts <- lapply(columns, function(column) {
    data.frame(item = items$item, player = sub(stem, "", column, fixed = TRUE), value = items[[column]])
  })
  all <- do.call(rbind, parts)
  all[!is.na(all$value), ]
}

# One group of a posterior_*.nc as posterior::draws_array. A variable with labels is slope[p000], one without slope[1].
read_posterior <- function(path, group = "posterior") {
  file <- ncdf4::nc_open(path)
  on.exit(ncdf4::nc_close(file))
  found <- grep(paste0("^", group, "/"), names(file$var), value = TRUE)
  if (length(found) == 0) stop(path, " has no group ", group)
  parts <- lapply(found, function(name) {
    variable <- file$var[[name]]
    # ncdf4 has the dimensions the other way round: chain and draw are the last two
    values <- ncdf4::ncvar_get(file, name, collapse_degen = FALSE)
    n <- length(dim(values))
    values <- aperm(values, c(n - 1, n, seq_len(n - 2)))
    inner <- lapply(variable$dim[seq_len(n - 2)], function(dim) as.character(dim$vals))
    short <- sub(".*/", "", name)
    labels <- short
    if (length(inner) > 0) {
      # the last dimension in Python runs fastest there and here
      cells <- expand.grid(inner, stringsAsFactors = FALSE)
      labels <- paste0(short, "[", do.call(paste, c(rev(cells), sep = ",")), "]")
    }
    array(values, c(dim(values)[1:2], length(labels)),
          dimnames = list(iteration = NULL, chain = NULL, variable = labels))
  })
  names <- unlist(lapply(parts, function(part) dimnames(part)$variable))
  all <- array(unlist(parts), c(dim(parts[[1]])[1:2], length(names)),
               dimnames = list(iteration = NULL, chain = NULL, variable = names))
  posterior::as_draws_array(all)
}
