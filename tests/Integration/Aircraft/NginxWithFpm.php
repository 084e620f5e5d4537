<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Assert;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Streams;
use Symfony\Component\Process\Process;

/** Runs the application with nginx.conf and php-fpm.conf of the example. Only their folder and port are replaced. */
final class NginxWithFpm extends Assert implements Host
{
    use OwnDirectory;

    private const EXAMPLE = __DIR__ . '/../../../examples/aircraft';
    private const NGINX = ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/usr/local/bin/nginx', '/usr/bin/nginx'];

    private readonly string $address;
    private readonly Process $fpm;
    private readonly Process $nginx;

    public function __construct(string $dsn)
    {
        $fpm = '/usr/sbin/php-fpm' . \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION;
        $nginx = current(array_filter(self::NGINX, is_executable(...)));
        if ($nginx === false || !is_executable($fpm)) {
            self::markTestSkipped("nginx or {$fpm} is not here");
        }
        $address = Streams::unusedAddress();
        $this->address = "tcp://{$address}";
        foreach (['nginx.conf', 'php-fpm.conf'] as $file) {
            $this->file(
                $file,
                strtr(
                    (string) file_get_contents(self::EXAMPLE . "/{$file}"),
                    ['/run/aircraft' => $this->path(), '127.0.0.1:8086' => $address],
                ),
            );
        }
        // A master that runs as root starts workers as another user, which can not read the files of the test.
        $isRoot = \function_exists('posix_geteuid') && posix_geteuid() === 0;
        $this->fpm = new Process([$fpm, ...($isRoot ? ['-R'] : []), '-y', $this->path('php-fpm.conf')], null, [
            'DATABASE_URL' => $dsn,
            'AIRCRAFT_WAIT' => (string) self::WAIT,
        ]);
        $this->nginx = new Process(
            [
                $nginx,
                '-p',
                (string) realpath(self::EXAMPLE),
                '-c',
                $this->path('nginx.conf'),
                ...($isRoot ? ['-g', 'user root;'] : []),
            ],
        );
        $this->fpm->start();
        $this->nginx->start();
        $serves = fn(): bool
            => file_exists($this->path('php-fpm.sock')) && Streams::accepts($this->address);
        Eventually::holdsByItself(
            fn(): bool => $serves() || !$this->fpm->isRunning() || !$this->nginx->isRunning(),
            'it serves',
        );
        self::assertTrue($serves(), $this->fpm->getErrorOutput() . $this->nginx->getErrorOutput());
    }

    public function address(): string
    {
        return $this->address;
    }

    public function stop(): void
    {
        $this->nginx->stop(2, \SIGKILL);
        $this->stopFpm();
        $this->removeDirectory();
    }

    public function stopFpm(): void
    {
        $this->fpm->stop(2, \SIGKILL);
    }
}
