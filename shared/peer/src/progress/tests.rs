use std::cell::RefCell;

use tokio::sync::oneshot;
use tokio::time::sleep;

use super::*;

const LIMIT: Duration = Duration::from_millis(300);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What was reported, and after how many milliseconds.
#[derive(Default)]
struct Reports(RefCell<Vec<(u64, usize, usize)>>);

impl Reports {
    fn add(&self, began: Instant, progress: RoundProgress) {
        let after = began.elapsed().as_millis() as u64;
        let report = (after, progress.done, progress.total);
        self.0.borrow_mut().push(report);
    }
}

/// Waits for what `work` answers in its own time, and for how long.
async fn wait<W>(work: impl FnOnce(Reporter, oneshot::Sender<u32>) -> W) -> (Waited, u64, Reports)
where
    W: Future<Output = ()> + Send + 'static,
{
    let began = Instant::now();
    let reports = Reports::default();
    let (reporter, mut progressing) = channel();
    let (answer, answered) = oneshot::channel();
    tokio::spawn(work(reporter, answer));
    let report = |progress| reports.add(began, progress);
    let waited = progressing.wait(LIMIT, answered, report).await;
    let took = began.elapsed().as_millis() as u64;
    (waited.map(|answer| answer.unwrap()), took, reports)
}

type Waited = Result<u32, Stalled>;

#[tokio::test(start_paused = true)]
async fn each_part_starts_the_time_anew() {
    let (waited, took, reports) = wait(|reporter, answer| async move {
        for done in 1..=4 {
            sleep(ms(250)).await;
            reporter.part(done * 10, 50);
        }
        sleep(ms(250)).await;
        answer.send(7).unwrap();
    })
    .await;
    assert_eq!((waited, took), (Ok(7), 1_250));
    let expected = [(250, 10, 50), (500, 20, 50), (750, 30, 50), (1_000, 40, 50)];
    assert_eq!(reports.0.into_inner(), expected);
}

#[tokio::test(start_paused = true)]
async fn work_that_stalls_is_late_after_its_last_progress() {
    let (waited, took, _) = wait(|reporter, answer| async move {
        sleep(ms(200)).await;
        reporter.part(1, 2);
        sleep(ms(301)).await;
        drop((reporter, answer));
    })
    .await;
    assert_eq!((waited, took), (Err(Stalled(LIMIT)), 500));
}

#[tokio::test(start_paused = true)]
async fn work_that_never_reports_is_late_after_its_time() {
    // A reporter that is gone is no progress.
    let (waited, took, reports) = wait(|reporter, answer| async move {
        sleep(ms(100)).await;
        drop(reporter);
        sleep(ms(1_000)).await;
        drop(answer);
    })
    .await;
    assert_eq!((waited, took), (Err(Stalled(LIMIT)), 300));
    assert_eq!(reports.0.into_inner(), []);
}

#[tokio::test(start_paused = true)]
async fn the_client_is_told_seldom_and_of_the_latest() {
    let (waited, _, reports) = wait(|reporter, answer| async move {
        for done in 1..=10 {
            sleep(ms(30)).await;
            reporter.part(done, 12);
        }
        sleep(ms(90)).await;
        answer.send(7).unwrap();
    })
    .await;
    assert_eq!(waited, Ok(7));
    // The first part at once, and the last without another after it.
    let expected = [(30, 1, 12), (130, 4, 12), (230, 7, 12), (330, 10, 12)];
    assert_eq!(reports.0.into_inner(), expected);
}

#[tokio::test(start_paused = true)]
async fn steps_are_told_of_where_they_take_long_and_add_up() {
    let quick = wait(|mut reporter, answer| async move {
        for _ in 0..5 {
            sleep(ms(10)).await;
            reporter.step(1);
        }
        answer.send(7).unwrap();
    });
    let (waited, _, reports) = quick.await;
    assert_eq!((waited, reports.0.into_inner()), (Ok(7), vec![]));
    let slow = wait(|mut reporter, answer| async move {
        reporter.count(4);
        for _ in 0..3 {
            sleep(ms(120)).await;
            reporter.step(1);
        }
        sleep(ms(40)).await;
        reporter.part(8, 9);
        sleep(ms(100)).await;
        answer.send(7).unwrap();
    });
    let (waited, _, reports) = slow.await;
    assert_eq!(waited, Ok(7));
    let expected = [(120, 5, 5), (240, 6, 6), (360, 7, 7), (460, 15, 16)];
    assert_eq!(reports.0.into_inner(), expected);
}
