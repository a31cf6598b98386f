//! Benchmarks of the parts of the engine, in one process: `cargo bench --manifest-path bench/parts/Cargo.toml`.

use std::{
    hint::black_box,
    io::Write,
    path::{Path, PathBuf},
};

use backtrail::{
    ListFilter, Options, RestoreRequest, SaveRequest, Scope, Start, Workspace, WorkspacePath, locate,
};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;

const DIRECTORIES: usize = 200;
const FILES: usize = 10;

struct Tree {
    workspace: Workspace,
    root: PathBuf,
    stamp: usize,
    _directory: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("tree");
        for number in 0..DIRECTORIES {
            let below = root.join(format!("{}/{number}", number % 13));
            std::fs::create_dir_all(&below).unwrap();
            for file in 0..FILES {
                std::fs::write(below.join(format!("{file}.rs")), text(number * FILES + file)).unwrap();
            }
        }
        let stores = directory.path().canonicalize().unwrap().join("stores");
        let location = locate(&Start::At(root.clone()), &stores, None).unwrap();
        let workspace = Workspace::new(location, Options::default());
        Self { workspace, root, stamp: 0, _directory: directory }
    }

    fn save(&self) {
        let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
        black_box(self.workspace.save(&request, Timestamp::now()).unwrap());
    }

    /// Adds a line to a number of files, different ones each time.
    fn edit(&mut self, count: usize) -> Vec<PathBuf> {
        self.stamp += 1;
        let path = |number: usize| {
            let (directory, file) = (number / FILES % DIRECTORIES, number % FILES);
            PathBuf::from(format!("{}/{directory}/{file}.rs", directory % 13))
        };
        let edited: Vec<PathBuf> = (0..count).map(|number| path(self.stamp * 131 + number * 7)).collect();
        for path in &edited {
            append(&self.root.join(path), &format!("edit {}\n", self.stamp));
        }
        edited
    }
}

fn text(seed: usize) -> String {
    (0..150).map(|line| format!("    let value_{line} = compute({}, {});\n", seed * line % 7919, seed)).collect()
}

fn append(path: &Path, line: &str) {
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
}

fn parts(criterion: &mut Criterion) {
    criterion.bench_function("first save", |bench| {
        bench.iter_batched(Tree::new, |tree| tree.save(), BatchSize::PerIteration);
    });

    let mut tree = Tree::new();
    tree.save();
    criterion.bench_function("save, no change", |bench| bench.iter(|| tree.save()));
    criterion.bench_function("status, no change", |bench| {
        bench.iter(|| black_box(tree.workspace.status(None).unwrap()));
    });
    for count in [1, 100] {
        criterion.bench_function(&format!("save, {count} edited"), |bench| {
            bench.iter_custom(|rounds| {
                (0..rounds)
                    .map(|_| {
                        tree.edit(count);
                        let began = std::time::Instant::now();
                        tree.save();
                        began.elapsed()
                    })
                    .sum()
            });
        });
    }
    criterion.bench_function("restore of one file", |bench| {
        bench.iter_custom(|rounds| {
            (0..rounds)
                .map(|_| {
                    let target = tree.workspace.current().unwrap().unwrap();
                    let path = tree.edit(1)[0].to_str().unwrap().to_owned();
                    let scope = Scope::of_paths(vec![WorkspacePath::new(path.into_bytes()).unwrap()]);
                    let request = RestoreRequest { scope, ..RestoreRequest::whole(target) };
                    let began = std::time::Instant::now();
                    black_box(tree.workspace.restore(&request, Timestamp::now()).unwrap());
                    began.elapsed()
                })
                .sum()
        });
    });
    let filter = ListFilter { limit: Some(20), brief: true, ..ListFilter::default() };
    criterion.bench_function("list of twenty", |bench| {
        bench.iter(|| black_box(tree.workspace.list(&filter).unwrap()));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = parts
}
criterion_main!(benches);
