//! The external sweep: kills the built program at every system call that changes something, makes each call fail, and
//! checks that nothing is lost.
//!
//! ```text
//! sweep [--skip N] [--sample N] [--seed N] [--seconds N] [--jobs N] [--only OPERATION] [--fault WORD] [--at POINT]… [--program PATH]
//! sweep --git
//! ```
//!
//! If `strace` can't be used, the program reports that and ends with success. With `--git`, the same is done to git's
//! own commands for comparison: problems are counted, but are no failures of this program.

#![expect(clippy::print_stdout, reason = "it prints its results")]
#![expect(clippy::unwrap_used, reason = "a tool for tests stops if its own set-up fails")]

mod check;
mod fault;
mod git;
mod place;
mod scenario;
mod strace;

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use fault::Point;
use place::Place;
use scenario::Scenario;

/// The maximum number of failures that are printed in full.
const SHOWN_FAILURES: usize = 40;

/// The number of points between two progress messages.
const SHOWN_PROGRESS: usize = 500;

struct Arguments {
    skip: usize,
    sample: Option<usize>,
    seed: u64,
    jobs: usize,
    only: Option<String>,
    fault: Option<String>,
    program: PathBuf,
    git: bool,
    points: Vec<String>,
    seconds: Option<u64>,
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("backtrail");
        let mut read = Self {
            skip: 0,
            sample: None,
            seed: 1,
            jobs: 2,
            only: None,
            fault: None,
            program,
            git: false,
            points: Vec::new(),
            seconds: None,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: String| text.parse::<u64>().map_err(|_| format!("not a number: {text}"));
            match word.as_str() {
                "--skip" => read.skip = number(value()?)? as usize,
                "--sample" => read.sample = Some(number(value()?)? as usize),
                "--seed" => read.seed = number(value()?)?,
                "--jobs" => read.jobs = number(value()?)? as usize,
                "--only" => read.only = Some(value()?),
                "--fault" => read.fault = Some(value()?),
                "--program" => read.program = value()?.into(),
                "--at" => read.points.push(value()?),
                "--seconds" => read.seconds = Some(number(value()?)?),
                "--git" => read.git = true,
                _ => return Err(format!("unknown argument: {word}")),
            }
        }
        Ok(read)
    }
}

/// The results of one operation with one kind of fault.
#[derive(Default, Clone)]
struct Count {
    tried: usize,
    /// The number of runs that failed, or were killed, before they had changed a byte.
    untouched: usize,
    failed: usize,
}

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(why) => {
            println!("sweep: {why}");
            return ExitCode::from(2);
        }
    };
    if let Some(why) = strace::unusable_reason() {
        println!("the external sweep was skipped: {why}");
        return ExitCode::SUCCESS;
    }
    if arguments.git {
        return git::compare(&arguments);
    }
    if !arguments.program.is_file() {
        println!("sweep: {} does not exist: build it, or pass its path with --program", arguments.program.display());
        return ExitCode::from(2);
    }
    sweep(&arguments)
}

fn sweep(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let mut scenarios: Vec<Scenario> = scenario::all();
    if let Some(only) = &arguments.only {
        // Selects the scenario with this name. If there is none, selects all scenarios whose names contain it.
        let is_exact = scenarios.iter().any(|scenario| scenario.name == only);
        scenarios.retain(|scenario| if is_exact { scenario.name == only } else { scenario.name.contains(only) });
    }
    let mut work: Vec<(usize, Point)> = Vec::new();
    let mut places: Vec<Mutex<(Place, Option<check::Expected>)>> = Vec::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let place = Place::new(&arguments.program, number);
        (scenario.prepare)(&place);
        place.remember();
        place.reset();
        let calls = strace::baseline(&place, scenario);
        places.push(Mutex::new((place, None)));
        let points = fault::points(&calls).into_iter();
        // A call that always fails can't fail once more.
        let is_free = |point: &Point| scenario.always.is_none_or(|always| !always.contains(&point.call));
        work.extend(points.filter(is_free).map(|point| (number, point)));
    }
    work.retain(|(_, point)| {
        let is_wanted = arguments.fault.as_ref().is_none_or(|word| point.kind().contains(word.as_str()));
        is_wanted && (arguments.points.is_empty() || arguments.points.contains(&point.to_string()))
    });
    let total = work.len();
    // Even if the sweep ends early, every operation and every kind of fault has had its share.
    work.sort_by_cached_key(|(number, point)| sort_key(arguments.seed, scenarios[*number].name, point));
    work.drain(..arguments.skip.min(total));
    work.truncate(arguments.sample.unwrap_or(total));
    let (left, skip, seed) = (work.len(), arguments.skip, arguments.seed);
    println!("{left} of {total} points of {} operations, seed {seed}, from number {skip} on", scenarios.len());

    let next = AtomicUsize::new(0);
    let counts: Mutex<BTreeMap<(String, String), Count>> = Mutex::default();
    let failures: Mutex<usize> = Mutex::default();
    let missed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            let (next, counts, failures, missed) = (&next, &counts, &failures, &missed);
            let (work, scenarios, places) = (&work, &scenarios, &places);
            scope.spawn(move || {
                loop {
                    let position = next.fetch_add(1, Ordering::SeqCst);
                    let Some((number, point)) = work.get(position) else { break };
                    if arguments.seconds.is_some_and(|seconds| started.elapsed().as_secs() >= seconds) {
                        break;
                    }
                    if position > 0 && position.is_multiple_of(SHOWN_PROGRESS) {
                        let failed = *failures.lock().unwrap();
                        println!("{position} points, {failed} failures so far, {} s", started.elapsed().as_secs());
                    }
                    let scenario = &scenarios[*number];
                    let (place, expected) = &mut *places[*number].lock().unwrap();
                    let expected = expected.get_or_insert_with(|| check::expect(place, scenario));
                    place.reset();
                    let done = strace::inject(place, scenario, point);
                    if !done.was_injected {
                        missed.fetch_add(1, Ordering::SeqCst);
                        continue;
                    }
                    let check::Verdict { problems, is_untouched } =
                        check::after(place, scenario, expected, point, &done);
                    let mut counts = counts.lock().unwrap();
                    let count = counts.entry((scenario.name.to_owned(), point.kind())).or_default();
                    count.tried += 1;
                    count.untouched += usize::from(is_untouched);
                    if !problems.is_empty() {
                        count.failed += 1;
                        let mut failures = failures.lock().unwrap();
                        *failures += 1;
                        if *failures <= SHOWN_FAILURES {
                            let ending = format!("it ended with {:?} and printed: {}", done.code, done.stderr.trim());
                            println!(
                                "FAILED {}, {point}:\n    {}\n    {ending}",
                                scenario.name,
                                problems.join("\n    ")
                            );
                        }
                    }
                }
            });
        }
    });
    report(&counts.into_inner().unwrap(), missed.into_inner(), started)
}

/// Returns a pseudo-random sort key. The key of a point does not depend on the other points.
fn sort_key(seed: u64, operation: &str, point: &Point) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, operation, point.to_string()).hash(&mut hasher);
    hasher.finish()
}

fn report(counts: &BTreeMap<(String, String), Count>, missed: usize, started: Instant) -> ExitCode {
    let mut by_operation: BTreeMap<&str, Count> = BTreeMap::new();
    let mut by_fault: BTreeMap<&str, Count> = BTreeMap::new();
    let mut all = Count::default();
    for ((operation, fault), count) in counts {
        let totals = [by_operation.entry(operation).or_default(), by_fault.entry(fault).or_default(), &mut all];
        for total in totals {
            total.tried += count.tried;
            total.untouched += count.untouched;
            total.failed += count.failed;
        }
    }
    let print = |title: &str, rows: &BTreeMap<&str, Count>| {
        println!("{title:<34} {:>7} {:>9} {:>7}", "points", "untouched", "failed");
        for (name, count) in rows {
            println!("  {name:<32} {:>7} {:>9} {:>7}", count.tried, count.untouched, count.failed);
        }
    };
    print("operation", &by_operation);
    print("fault", &by_fault);
    println!("{} points left every byte as it was before", all.untouched);
    println!("{missed} points were not reached again: the threads divide the work differently in each run");
    let seconds = started.elapsed().as_secs();
    println!("{} points, {} failures, {seconds} s", all.tried, all.failed);
    if all.failed == 0 && all.tried > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
