<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Pictures;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Site\Chart\Theme;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\Cli\Program;
use Spindle\Tests\Cli\TerminalSession;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Integration\Http\Chromium;

/** Takes the pictures of the documentation. `tools/pictures` keeps them; otherwise they are only checked. */
#[Group('full')]
#[RequiresPhpExtension('pcntl')]
final class PicturesTest extends ServeTestCase
{
    use RunsAircraft;

    /** Bytes, so that the pictures of a page load at once and the repository stays small. */
    private const MAX_SIZE = 100_000;

    /** Per cent for WebP: a third of the bytes of PNG, and text stays sharp. */
    private const QUALITY = 85;

    private const COLUMNS = 96;

    /** Encodes for a time that depends on the number in the name, and fails for one of the files. */
    private const ENCODER = <<<'SH'
        number=$(expr "$1" : '[^0-9]*0*\([0-9]*\)')
        sleep $((number * 7 % 3)).$((number * 3 % 10))
        [ "$number" -ne 5 ] || { echo "$1: no audio stream" >&2; exit 1; }
        SH;

    private ?Chromium $browser = null;

    #[After(6)]
    protected function endBrowser(): void
    {
        $this->browser?->close();
        $this->browser = null;
    }

    public function testTheBar(): void
    {
        $this->assertTerminal('progress-bar', 'The bar of spindle run', 'bar', '~^(1[89]|2\d)/40 .*ETA~m');
    }

    public function testTheScreen(): void
    {
        $pattern = '~^(1[89]|2\d)/40 done.*Ctrl-C stop$~ms';
        $this->assertTerminal('progress-screen', 'The screen of spindle run', 'screen', $pattern);
    }

    public function testTheStatusPage(): void
    {
        $this->seed(200);
        $page = $this->browser();
        $options = ['--processes', '2', '--admin', '127.0.0.1:0', '--status'];
        $this->serve($this->aircraft([]), $options)->setTimeout(null);
        $page->open(str_replace('tcp://', 'http://', $this->adminAddress) . '/');
        $page->await("document.getElementById('state').dataset.state === 'live'");
        $this->makeTraffic($this->folder() === null ? 2 : 25);
        $page->await("document.querySelector('#routes tbody tr:nth-child(3)') !== null");

        $this->assertPhotographs($page, 'status-page', 1120, 690);
    }

    public function testTheAircraftPage(): void
    {
        $this->seed(6);
        $page = $this->browser();
        $this->serve($this->aircraft([]), ['--processes', '1'])->setTimeout(null);
        $page->open(str_replace('tcp://', 'http://', $this->address) . '/');
        $page->await("document.getElementById('state').dataset.state === 'live'");
        foreach (['D-AIMA,Airbus A380,MSN 38', 'D-ABYT,Boeing 747-8,MSN 37830'] as $row) {
            [$number, $title, $serialNumber] = explode(',', $row);
            $page->evaluate(<<<JS
                fetch('/aircraft', {
                    method: 'POST',
                    headers: { 'Content-Type': 'application/json' },
                    body: JSON.stringify({ number: '{$number}', title: '{$title}', serial_number: '{$serialNumber}' }),
                })
                JS);
        }
        $page->await("document.querySelectorAll('#events li').length >= 2");
        $page->evaluate("document.querySelector('#report button[value=title]').click()");
        $page->await("!document.getElementById('counts').hidden");

        $this->assertPhotographs($page, 'aircraft-page', 1120, 760);
    }

    /** @param string $pattern text of the terminal at which the picture is taken */
    private function assertTerminal(string $name, string $title, string $mode, string $pattern): void
    {
        $this->script('encode', self::ENCODER);
        for ($number = 1; $number <= 40; ++$number) {
            $this->file(\sprintf('video-%02d.mov', $number), '');
        }
        $command = "spindle run -j4 --progress {$mode} ./encode {} ::: *.mov";
        $session = new TerminalSession(
            "echo '\$ {$command}'; stty -echo; \$SPINDLE " . substr($command, \strlen('spindle ')),
            $this->path(),
            ['SPINDLE' => Program::path()],
            self::COLUMNS,
            18,
        );
        $session->waitFor($pattern, 60);
        $picture = new TerminalPicture($title, $session->terminal->styledScreen(), self::COLUMNS);
        $session->wait(60);

        foreach (Theme::cases() as $theme) {
            $svg = $picture->svg($theme);
            self::assertNotFalse(simplexml_load_string($svg));
            $this->keep("{$name}-{$theme->value}.svg", $svg);
        }
    }

    private function assertPhotographs(Chromium $page, string $name, int $width, int $height): void
    {
        $page->call(
            'Emulation.setDeviceMetricsOverride',
            ['width' => $width, 'height' => $height, 'deviceScaleFactor' => 1, 'mobile' => false],
        );
        foreach (Theme::cases() as $theme) {
            $features = [['name' => 'prefers-color-scheme', 'value' => $theme->value]];
            $page->call('Emulation.setEmulatedMedia', ['features' => $features]);
            // The second frame is one that the browser began after the change.
            $page->evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
            $data = $page->call('Page.captureScreenshot', ['format' => 'webp', 'quality' => self::QUALITY])['data'];
            self::assertIsString($data);
            $this->keep("{$name}-{$theme->value}.webp", (string) base64_decode($data, true));
        }
        self::assertSame([], $page->complaints);
    }

    private function keep(string $name, string $picture): void
    {
        self::assertLessThan(self::MAX_SIZE, \strlen($picture), $name);
        self::assertFileExists(\dirname(__DIR__, 3) . "/docs/images/{$name}");
        if (($folder = $this->folder()) !== null) {
            file_put_contents("{$folder}/{$name}", $picture);
        }
    }

    /** Returns the folder in which the pictures are kept, or null. */
    private function folder(): ?string
    {
        $folder = getenv('SPINDLE_PICTURES');

        return $folder === false ? null : $folder;
    }

    private function browser(): Chromium
    {
        $program = Chromium::program() ?? self::markTestSkipped('Chromium is not installed');
        mkdir($this->path('browser'));

        return $this->browser = new Chromium($program, $this->path('browser'));
    }

    /** Sends requests for some seconds, at a rate that rises and falls. */
    private function makeTraffic(int $seconds): void
    {
        for ($second = 0; $second < $seconds; ++$second) {
            $end = hrtime(true) + 1_000_000_000;
            for ($i = 0; $i < 12 + 8 * sin($second / 3) && hrtime(true) < $end; ++$i) {
                $this->get(match ($i % 10) {
                    0 => '/aircraft?limit=50',
                    1 => '/aircraft/export',
                    2 => '/aircraft/X-UNKNOWN',
                    default => \sprintf('/aircraft/S-%06d', $i),
                });
            }
            usleep(max(0, intdiv($end - (int) hrtime(true), 1000)));
        }
    }

    protected function deadline(): int
    {
        return 240;
    }
}
