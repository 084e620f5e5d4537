<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\BeforeClass;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Remote\Testing\TemporaryRedisOptions;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Postgres\Certificates;

/** Connects to an engine that requires client certificates. */
final class TlsFilesTest extends TestCase
{
    use EndsInTime;
    use RunsWork;

    private static ?TemporaryRedis $redis = null;

    /** @var array{string, string, string} contents of the authority's certificate, the client's, and its key */
    private static array $contents = ['', '', ''];

    public function testTheFilesComeFromOptions(): void
    {
        [$authority, $certificate, $key] = $this->files();
        $queue = self::newQueue();
        $files = ['--tls-ca', $authority, '--tls-cert', $certificate, '--tls-key', $key];
        $this->work($queue, $files, environment: $this->address());
        $run = $this->ranRemote(['run', '--queue', $queue, ...$files, 'echo', ':::', 'a'], $this->address());

        self::assertSame([0, "a\n", ''], [$run->getExitCode(), $run->getOutput(), $run->getErrorOutput()]);
        $list = $this->ranRemote(['queue', 'list', ...$files], $this->address());
        self::assertSame(0, $list->getExitCode(), $list->getErrorOutput());
        self::assertStringContainsString($queue, $list->getOutput());
    }

    public function testTheFilesComeFromTheEnvironment(): void
    {
        [$authority, $certificate, $key] = $this->files();
        $environment = [...$this->address(), 'SPINDLE_TLS_CA' => $authority, 'SPINDLE_TLS_CERT' => $certificate];

        $list = $this->ranRemote(['queue', 'list'], [...$environment, 'SPINDLE_TLS_KEY' => $key]);
        self::assertSame(0, $list->getExitCode(), $list->getErrorOutput());
        $both = $this->file('both', self::$contents[1] . self::$contents[2], 0o600);
        $list = $this->ranRemote(['queue', 'list', '--tls-cert', $both], $environment);
        self::assertSame(0, $list->getExitCode(), $list->getErrorOutput());
    }

    public function testEachMissingFileHasItsMessage(): void
    {
        [$authority, $certificate, $key] = $this->files();
        $refusals = [
            'TlsOptions, --tls-ca or the variable' => [],
            '--tls-cert, to a certificate that the server accepts' => ['SPINDLE_TLS_CA' => $authority],
        ];
        foreach ($refusals as $advice => $files) {
            $list = $this->ranRemote(['queue', 'list'], [...$this->address(), ...$files]);
            self::assertStringContainsString($advice, $list->getErrorOutput());
            self::assertSame(253, $list->getExitCode());
        }
        foreach ([
            "option --tls-ca: can't read the file 'none'; give the path of a PEM file" => ['--tls-ca', 'none'],
            'option --tls-key: a private key needs a certificate; give the path of its PEM file too'
                => ['--tls-key', $key],
            'option --tls-cert: the address of the engine is not for TLS; give one that begins with rediss://'
                => ['--tls-cert', $certificate, '--broker', 'redis://127.0.0.1'],
            'option --tls-cert: the value is empty; give a value' => ['--tls-cert='],
        ] as $message => $options) {
            $list = $this->ranRemote(['queue', 'list', ...$options], $this->address());
            self::assertSame([255, "spindle: {$message}\n"], [$list->getExitCode(), $list->getErrorOutput()]);
        }
        $list = $this->ranRemote(['queue', 'list'], [...$this->address(), 'SPINDLE_TLS_CERT' => 'none']);
        self::assertSame(
            "spindle: SPINDLE_TLS_CERT: can't read the file 'none'; give the path of a PEM file\n",
            $list->getErrorOutput(),
        );
        self::assertSame(
            "spindle: option --tls-ca: without a queue, jobs run on this machine; add --queue NAME\n",
            $this->ranRemote(['run', '--tls-ca', $authority, 'echo', ':::', 'a'])->getErrorOutput(),
        );
    }

    public function testAFileThatCantBeUsedIsNamed(): void
    {
        [$authority, $certificate] = $this->files();
        $junk = $this->file('junk', 'junk');
        foreach ([
            ['--tls-ca', $authority, '--tls-cert', $certificate],
            ['--tls-ca', $authority, '--tls-cert', $junk],
            ['--tls-ca', $junk],
        ] as $options) {
            $list = $this->ranRemote(['queue', 'list', ...$options], $this->address());
            self::assertSame(253, $list->getExitCode());
            self::assertStringContainsString(basename(end($options)), $list->getErrorOutput());
            self::assertStringContainsString('check that this file is in PEM format', $list->getErrorOutput());
        }
    }

    #[BeforeClass]
    public static function startEngine(): void
    {
        self::$contents = Certificates::during(static function (Certificates $authority): array {
            [$certificate, $key] = $authority->forServer('127.0.0.1');
            self::$redis = TemporaryRedis::start(
                ['tls-auth-clients' => 'yes', 'tls-ca-cert-file' => $authority->authority],
                new TemporaryRedisOptions(certificate: $certificate, key: $key),
            );
            $files = [$authority->authority, ...$authority->forClient('app')];

            return array_map(static fn(string $file): string => (string) file_get_contents($file), $files);
        });
    }

    #[AfterClass]
    public static function stopEngine(): void
    {
        self::$redis?->stop();
        self::$redis = null;
    }

    /** @return array{string, string, string} paths of the authority's certificate, the client's, and its key */
    private function files(): array
    {
        return [
            $this->file('authority', self::$contents[0]),
            $this->file('certificate', self::$contents[1]),
            $this->file('private-key', self::$contents[2], 0o600),
        ];
    }

    /** @return array{SPINDLE_BROKER: string} */
    private function address(): array
    {
        return ['SPINDLE_BROKER' => self::$redis?->tlsUrl() ?? ''];
    }
}
