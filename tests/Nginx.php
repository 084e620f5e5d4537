<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use Symfony\Component\Process\Process;

/** Starts an nginx for one test. The test also needs {@see OwnDirectory}. */
trait Nginx
{
    private ?Process $nginx = null;

    #[After(5)]
    protected function stopNginx(): void
    {
        $this->nginx?->stop(2, \SIGKILL);
        $this->nginx = null;
    }

    /**
     * Starts nginx with one server. Skips the test where nginx is not installed.
     *
     * @param string $server directives of the server
     *
     * @return string address of the server, on a port of the loopback interface
     */
    private function startNginx(string $server): string
    {
        return $this->startNginxWith(static fn(string $address): string => "server { listen {$address}; {$server} }");
    }

    /**
     * Starts nginx. Skips the test where nginx is not installed.
     *
     * @param \Closure(string): string $http returns the http block, for a server at the given address
     *
     * @return string address of the server
     */
    private function startNginxWith(\Closure $http): string
    {
        $program = current(array_filter(
            ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/usr/local/bin/nginx', '/usr/bin/nginx'],
            is_executable(...),
        ));
        if ($program === false) {
            self::markTestSkipped('nginx is not installed');
        }
        $address = Streams::unusedAddress();
        $configuration = $this->file('nginx.conf', $this->nginxConfiguration($http($address)));
        $this->nginx = $nginx = new Process(
            [$program, '-p', $this->path(), '-e', $this->path('nginx.log'), '-c', $configuration],
        );
        $nginx->start();
        Eventually::holds(
            static fn(): bool => !$nginx->isRunning() || Streams::accepts("tcp://{$address}"),
            'nginx listens',
        );
        self::assertTrue($nginx->isRunning(), implode("\n", Text::lines($this->path('nginx.log'))));

        return $address;
    }

    private function nginxConfiguration(string $http): string
    {
        // A master that runs as root starts workers as another user, which can not read the files of the test.
        $user = \function_exists('posix_geteuid') && posix_geteuid() === 0 ? 'user root;' : '';

        return <<<NGINX
            daemon off;
            {$user}
            worker_processes 1;
            pid {$this->path('nginx.pid')};
            error_log {$this->path('nginx.log')};
            events {}
            http {
                access_log off;
                client_body_temp_path {$this->path('nginx.body')};
                proxy_temp_path {$this->path('nginx.proxy')};
                fastcgi_temp_path {$this->path('nginx.fastcgi')};
                uwsgi_temp_path {$this->path('nginx.uwsgi')};
                scgi_temp_path {$this->path('nginx.scgi')};
                {$http}
            }
            NGINX;
    }
}
