use super::*;

/// Polls in real time, as files are read on other threads.
const INTERVAL: Duration = Duration::from_millis(20);

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..250 {
        if holds() {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    panic!("not within five seconds: {what}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_change_is_taken_over_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    std::fs::write(&first, "1").unwrap();
    std::fs::write(&second, "2").unwrap();
    let link = folder.path().join("number");
    let point_to = |target: &PathBuf| {
        let new = folder.path().join("new");
        std::os::unix::fs::symlink(target, &new).unwrap();
        std::fs::rename(new, &link).unwrap();
    };
    point_to(&first);
    let file = link.clone();
    let reads = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&reads);
    let number = Reloaded::start("numbers", vec![link.clone()], INTERVAL, move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        text.parse::<u32>().map_err(|error| error.to_string())
    })
    .unwrap();
    let held = number.get();
    assert_eq!(*held, 1);

    point_to(&second);
    eventually("the second", || *number.get() == 2).await;
    assert_eq!(*held, 1, "what is in use is not changed under the hand");

    std::fs::write(&second, "two").unwrap();
    let reads = || reads.load(std::sync::atomic::Ordering::Relaxed);
    eventually("a third reading", || reads() == 3).await;
    tokio::time::sleep(INTERVAL * 5).await;
    assert_eq!((*number.get(), reads()), (2, 3), "read once, and refused");

    std::fs::remove_file(&link).unwrap();
    eventually("a fourth reading", || reads() == 4).await;
    assert_eq!(*number.get(), 2);
    point_to(&first);
    eventually("the first again", || *number.get() == 1).await;
}

#[test]
fn what_is_told_to_be_read_again_says_what_could_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["number", "other"].map(|name| folder.path().join(name));
    let reloads = Reloads::default();
    let numbers = files.clone().map(|file| {
        std::fs::write(&file, "1").unwrap();
        let what = if file.ends_with("number") {
            "numbers"
        } else {
            "others"
        };
        // No task looks for changes.
        let started = Reloaded::start(what, vec![file.clone()], Duration::ZERO, move || {
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            text.parse::<u32>().map_err(|error| error.to_string())
        });
        let number = started.unwrap();
        reloads.add(&number);
        number
    });
    reloads.add(&numbers[0].clone());
    reloads.add(&Reloaded::fixed(7));
    std::fs::write(&files[0], "2").unwrap();
    std::fs::write(&files[1], "two").unwrap();
    assert_eq!(numbers.each_ref().map(|number| *number.get()), [1, 1]);
    assert_eq!(reloads.read(), [("numbers", true), ("others", false)]);
    assert_eq!(numbers.each_ref().map(|number| *number.get()), [2, 1]);
}

#[test]
fn a_file_without_an_end_is_refused() {
    let read = || contents("auth.token_file", Path::new("/dev/zero"));
    if Path::new("/dev/zero").exists() {
        let refused = read().unwrap_err().to_string();
        let said = "auth.token_file: /dev/zero: cannot be read: more than 16 MiB (16777216 bytes)";
        assert!(refused.starts_with(said), "{refused}");
    }
}

#[test]
fn what_cannot_be_read_at_the_start_is_refused() {
    let refused = Reloaded::<u32>::start("numbers", vec![], Duration::ZERO, || Err("no"));
    assert_eq!(refused.unwrap_err(), "no");
}
