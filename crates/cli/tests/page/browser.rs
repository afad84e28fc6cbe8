//! A page in a real browser.

use crate::common::folder::Folder;
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::protocol::cdp::{Emulation, Input, Network, Page as CdpPage, Runtime};
use headless_chrome::{Browser, LaunchOptions, Tab};
use serde_json::Value;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The timeout of an action of the page, also on a loaded computer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The size of its window, in pixels.
const WINDOW: (u32, u32) = (1280, 1500);
/// Shift, as DevTools counts keys that are held.
pub(crate) const SHIFT: u32 = 8;

/// The colour scheme.
#[derive(Clone, Copy)]
pub(crate) enum Ground {
    Light,
    Dark,
}

/// A page in a separate browser.
pub(crate) struct Page {
    tab: Arc<Tab>,
    seen: Arc<Mutex<Seen>>,
    // Lock: one browser at a time, because parallel ones slow each other down. Dropped last.
    _browser: Browser,
    _leftovers: Folder,
    _alone: MutexGuard<'static, ()>,
}

/// Events of the browser about the page.
#[derive(Default)]
struct Seen {
    /// Errors and warnings, of the page and about it.
    complaints: Vec<String>,
    /// The requests of the page.
    requests: Vec<String>,
}

/// Where something is in the window, in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A screenshot.
pub(crate) struct Screenshot {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

/// The browser's executable; `None`, and a line that says so, if there is none and none is required.
fn executable() -> Option<PathBuf> {
    match headless_chrome::browser::default_executable() {
        Ok(path) => Some(path),
        Err(missing) => {
            let required = std::env::var_os("GONDWANA_BROWSER").is_some_and(|value| value == "required");
            assert!(!required, "there is no browser: {missing}");
            // Not through the macros, whose output the test harness hides when tests pass.
            let line = "skipped: tests in a browser, because there is no Chromium (apt install chromium)\n";
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        }
    }
}

impl Page {
    /// Opens a file; `None` if there is no browser.
    pub(crate) fn open(file: &Path, ground: Ground) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let path = executable()?;
        // A failed test leaves nothing behind.
        let alone = gondwana_locks::lock(&ALONE);
        // The browser is killed, so it removes no files.
        let leftovers = Folder::new();
        let variables = [("TMPDIR".to_owned(), leftovers.display().to_string())];
        let options = LaunchOptions {
            path: Some(path),
            // Chromium's own sandbox does not work for root and in most containers; the page is ours.
            sandbox: false,
            window_size: Some(WINDOW),
            idle_browser_timeout: TIMEOUT,
            process_envs: Some(variables.into()),
            ..LaunchOptions::default()
        };
        let browser = Browser::new(options).unwrap();
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(TIMEOUT);
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let noted = Arc::clone(&seen);
        tab.enable_log().unwrap().enable_runtime().unwrap();
        let network = Network::Enable {
            max_total_buffer_size: None,
            max_resource_buffer_size: None,
            max_post_data_size: None,
            report_direct_socket_traffic: None,
            enable_durable_messages: None,
        };
        tab.call_method(network).unwrap();
        tab.add_event_listener(Arc::new(move |event: &Event| noted.lock().unwrap().note(event))).unwrap();
        let colours = match ground {
            Ground::Light => "light",
            Ground::Dark => "dark",
        };
        let feature =
            Emulation::MediaFeature { name: "prefers-color-scheme".to_owned(), value: colours.to_owned() };
        let still =
            Emulation::MediaFeature { name: "prefers-reduced-motion".to_owned(), value: "reduce".to_owned() };
        tab.call_method(Emulation::SetEmulatedMedia { media: None, features: Some(vec![feature, still]) })
            .unwrap();
        tab.navigate_to(&format!("file://{}", file.display())).unwrap().wait_until_navigated().unwrap();
        Some(Self { tab, seen, _browser: browser, _leftovers: leftovers, _alone: alone })
    }

    /// The value of an expression, or of its promise.
    pub(crate) fn value(&self, expression: &str) -> Value {
        let evaluated = Runtime::Evaluate {
            expression: expression.to_owned(),
            return_by_value: Some(true),
            await_promise: Some(true),
            ..nothing()
        };
        let evaluated = self.tab.call_method(evaluated).unwrap();
        assert!(evaluated.exception_details.is_none(), "{expression}: {:?}", evaluated.exception_details);
        evaluated.result.value.unwrap_or(Value::Null)
    }

    /// Waits until a condition holds.
    pub(crate) fn until(&self, condition: &str) {
        let limit = TIMEOUT.as_millis();
        let waited = self.value(&format!(
            "new Promise((done) => {{
                const end = performance.now() + {limit};
                const look = () => {{
                    if ({condition}) done(true);
                    else if (performance.now() > end) done(false);
                    else requestAnimationFrame(look);
                }};
                look();
            }})"
        ));
        assert_eq!(
            waited,
            true,
            "{condition}: {}",
            self.value("JSON.stringify(document.getElementById('picture')?.dataset)")
        );
    }

    /// The text of an element.
    pub(crate) fn text(&self, selector: &str) -> String {
        self.value(&format!("document.querySelector({selector:?}).innerText")).as_str().unwrap().to_owned()
    }

    /// A part of the state of the picture.
    pub(crate) fn state(&self, name: &str) -> String {
        let value = self.value(&format!("document.getElementById('picture').dataset.{name}"));
        value.as_str().unwrap_or_else(|| panic!("the picture has no {name}")).to_owned()
    }

    /// Clicks on an element, as people do: where it is.
    pub(crate) fn click(&self, selector: &str) {
        self.tab.find_element(selector).unwrap().click().unwrap();
    }

    /// Presses a key.
    pub(crate) fn press(&self, key: &str) {
        self.tab.press_key(key).unwrap();
    }

    /// Types a text.
    pub(crate) fn write(&self, text: &str) {
        self.tab.type_str(text).unwrap();
    }

    /// Where an element is, brought into the window.
    pub(crate) fn place(&self, selector: &str) -> Place {
        let place = self.value(&format!(
            "(() => {{
                const element = document.querySelector({selector:?});
                element.scrollIntoView({{ block: 'center' }});
                const {{ left, top, width, height }} = element.getBoundingClientRect();
                return [left, top, width, height];
            }})()"
        ));
        let [left, top, width, height] = [0, 1, 2, 3].map(|index| place[index].as_f64().unwrap());
        Place { left, top, width, height }
    }

    /// Turns the wheel over a point; upwards if negative.
    pub(crate) fn wheel(&self, (x, y): (f64, f64), turn: f64) {
        let event = Input::DispatchMouseEventTypeOption::MouseWheel;
        self.tab
            .call_method(Input::DispatchMouseEvent {
                delta_x: Some(0.0),
                delta_y: Some(turn),
                ..mouse(event, x, y)
            })
            .unwrap();
    }

    /// Moves the pointer to a point.
    pub(crate) fn point(&self, (x, y): (f64, f64)) {
        self.tab.call_method(mouse(Input::DispatchMouseEventTypeOption::MouseMoved, x, y)).unwrap();
    }

    /// Drags from one point to another, with these keys held.
    pub(crate) fn drag(&self, from: (f64, f64), to: (f64, f64), held: u32) {
        use Input::DispatchMouseEventTypeOption::{MouseMoved, MousePressed, MouseReleased};
        let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        for (event, (x, y)) in
            [(MousePressed, from), (MouseMoved, middle), (MouseMoved, to), (MouseReleased, to)]
        {
            let event = Input::DispatchMouseEvent {
                modifiers: Some(held),
                button: Some(Input::MouseButton::Left),
                buttons: Some(1),
                click_count: Some(1),
                ..mouse(event, x, y)
            };
            self.tab.call_method(event).unwrap();
        }
    }

    /// What is in the window, also as a file in the folder of the tests for people to look at.
    pub(crate) fn screenshot(&self, name: &str) -> Screenshot {
        let format = CdpPage::CaptureScreenshotFormatOption::Png;
        let png = self.tab.capture_screenshot(format, None, None, true).unwrap();
        std::fs::write(folder().join(format!("{name}.png")), &png).unwrap();
        Screenshot::decode(&png)
    }

    /// The page must have requested only itself, without errors or warnings.
    pub(crate) fn was_quiet(&self) {
        let seen = self.seen.lock().unwrap();
        assert!(seen.complaints.is_empty(), "{:#?}", seen.complaints);
        assert!(seen.requests.len() == 1 && seen.requests[0].starts_with("file://"), "{:#?}", seen.requests);
    }
}

impl Seen {
    fn note(&mut self, event: &Event) {
        match event {
            Event::RuntimeExceptionThrown(thrown) => {
                self.complaints.push(format!("{:?}", thrown.params.exception_details));
            }
            Event::RuntimeConsoleAPICalled(called) => {
                self.complaints.push(format!("{:?}", called.params.args))
            }
            Event::LogEntryAdded(added) => self.complaints.push(format!("{:?}", added.params.entry)),
            Event::NetworkRequestWillBeSent(request) => {
                self.requests.push(request.params.request.url.clone())
            }
            _ => {}
        }
    }
}

impl Place {
    /// A point of it, by shares of its width and height.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * self.width, self.top + y * self.height)
    }
}

impl Screenshot {
    fn decode(png: &[u8]) -> Self {
        let mut reader = png::Decoder::new(Cursor::new(png)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let pixels =
            bytes.chunks_exact(info.color_type.samples()).map(|pixel| [pixel[0], pixel[1], pixel[2]]);
        Self { width: info.width as usize, pixels: pixels.collect() }
    }

    /// How many pixels of a place have a colour.
    pub(crate) fn count(&self, place: Place, colour: [u8; 3]) -> usize {
        let rows = pixel(place.top)..pixel(place.top + place.height);
        let columns = pixel(place.left)..pixel(place.left + place.width).min(self.width);
        let row = |row: usize| {
            let pixels = columns.clone().filter_map(move |column| self.pixels.get(row * self.width + column));
            pixels.filter(|&&pixel| pixel == colour).count()
        };
        rows.map(row).sum()
    }
}

/// The pixel at a place; the first one for all places before it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "floats have no other conversion; this one cuts off parts of pixels, and makes negative numbers 0"
)]
fn pixel(at: f64) -> usize {
    at as usize
}

/// The folder in which the pages and screenshots of the tests are.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn mouse(event: Input::DispatchMouseEventTypeOption, x: f64, y: f64) -> Input::DispatchMouseEvent {
    Input::DispatchMouseEvent {
        Type: event,
        x,
        y,
        modifiers: None,
        timestamp: None,
        button: None,
        buttons: None,
        click_count: None,
        force: None,
        tangential_pressure: None,
        tilt_x: None,
        tilt_y: None,
        twist: None,
        delta_x: None,
        delta_y: None,
        pointer_Type: None,
    }
}

fn nothing() -> Runtime::Evaluate {
    Runtime::Evaluate {
        expression: String::new(),
        return_by_value: None,
        generate_preview: None,
        silent: None,
        await_promise: None,
        include_command_line_api: None,
        user_gesture: None,
        object_group: None,
        context_id: None,
        throw_on_side_effect: None,
        timeout: None,
        disable_breaks: None,
        repl_mode: None,
        allow_unsafe_eval_blocked_by_csp: None,
        unique_context_id: None,
        serialization_options: None,
    }
}
