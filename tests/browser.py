"""A headless chromium that opens pages and answers questions, over a pipe, without a network."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LONGEST = 60.0  # seconds that one answer may take
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which needs privileges that a container lacks
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """One page of a browser, and what it said and asked for."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        theirs_in, self.out = os.pipe()
        self.inp, theirs_out = os.pipe()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"]
        # the browser reads from descriptor 3 and writes to 4
        shell = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *command]
        self.process = subprocess.Popen(
            shell,
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.rest, self.count, self.events, self.session = b"", 0, [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.inp)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _message(self):
        while b"\0" not in self.rest:
            more = os.read(self.inp, 1 << 20)
            if not more:
                raise OSError("the browser is gone")
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def ask(self, method, **parameters):
        self.count += 1
        said = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            said["sessionId"] = self.session
        os.write(self.out, json.dumps(said).encode() + b"\0")
        limit = time.monotonic() + LONGEST
        while time.monotonic() < limit:
            message = self._message()
            if message.get("id") == self.count:
                if "error" in message:
                    raise OSError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)
        raise OSError(f"no answer to {method}")

    def open(self, path, width=1200, dark=False, media=""):
        """Open a page, and return complaints and what it asked the network for."""
        self.size(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())
        self.run("1")
        wrong = []
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded":
                wrong.append(about["entry"]["text"])
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                wrong.append(json.dumps(about))
            if method == "Network.requestWillBeSent":
                url = about["request"]["url"]
                if url != path.as_uri() and not url.startswith("data:"):
                    wrong.append(url)
        return wrong

    def size(self, width, height=900):
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def run(self, expression):
        """Return the value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def picture(self, whole=True):
        """Return the page as a png."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def paper(self):
        """Return the page as it is printed, a pdf."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])
