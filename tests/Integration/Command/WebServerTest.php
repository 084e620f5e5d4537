<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\WebServer;
use Symfony\Component\Process\Process;

/** A pool in a web page, where PHP_BINARY may not be a command-line PHP and sockets belong to the server. */
final class WebServerTest extends TidyTestCase
{
    use OwnDirectory;
    use WebServer;

    private const PAGE = __DIR__ . '/web.php';

    public function testAPageOfTheBuiltInServerRunsCommands(): void
    {
        $address = $this->startBuiltIn(self::PAGE);
        for ($i = 0; $i < 3; ++$i) {
            $this->check('cli-server', (string) file_get_contents($address));
        }
    }

    public function testAPageUnderFpmRunsCommands(): void
    {
        $this->startFpm();
        for ($i = 0; $i < 3; ++$i) {
            $this->check('fpm-fcgi', $this->askFpm(self::PAGE));
        }
    }

    public function testAPageUnderFpmWithoutAnEnvironmentOfAnotherUserRunsCommands(): void
    {
        if (posix_getuid() !== 0 || posix_getpwnam('nobody') === false) {
            self::markTestSkipped('Another user can not be had here');
        }
        $this->startFpm("user = nobody\ngroup = nogroup\nclear_env = yes");
        $this->check('fpm-fcgi', $this->askFpm($this->copyReadableToAll()));
    }

    private function check(string $sapi, string $answer): void
    {
        $page = json_decode($answer, true);
        self::assertIsArray($page, $answer);
        self::assertIsArray($page['outputs']);
        $descriptors = $page['outputs'][4] ?? null;
        self::assertIsString($descriptors);
        unset($page['outputs'][4]);

        self::assertSame(
            [
                'sapi' => $sapi,
                'outputs' => [0 => 'of', 1 => 'shell', 2 => 200_000, 3 => 'by the page', 5 => ''],
                'launchers' => 1,
            ],
            $page,
        );
        self::assertStringNotContainsString('socket:', $descriptors);
    }

    /** @return string path of a page without Composer's autoloader, which another user may not be allowed to read */
    private function copyReadableToAll(): string
    {
        $project = \dirname(__DIR__, 3);
        $folders = [
            'Spindle\\Tests\\' => 'tests', 'Spindle\\' => 'src', 'Revolt\\' => 'vendor/revolt/event-loop/src',
            'Amp\\' => 'vendor/amphp/amp/src', 'Psr\\Log\\' => 'vendor/psr/log/src',
        ];
        foreach ($folders as $folder) {
            mkdir(\dirname($this->path($folder)), recursive: true);
            (new Process(['cp', '-r', "{$project}/{$folder}", $this->path($folder)]))->mustRun();
        }
        (new Process(['chmod', '-R', 'a+rX', $this->path()]))->mustRun();
        $loader = '<?php spl_autoload_register(function ($class) {
            foreach (' . var_export($folders, true) . ' as $prefix => $folder) {
                $file = dirname(__DIR__) . "/$folder/" . strtr(substr($class, strlen($prefix)), "\\\\", "/") . ".php";
                if (str_starts_with($class, $prefix) && is_file($file)) {
                    return require $file;
                }
            }
        });
        foreach (["functions", "Internal/functions", "Future/functions"] as $name) {
            require dirname(__DIR__) . "/vendor/amphp/amp/src/$name.php";
        }';

        file_put_contents($this->path('vendor/autoload.php'), $loader);
        chmod($this->path('vendor/autoload.php'), 0o644);

        return $this->path('tests/Integration/Command/web.php');
    }
}
