<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Program;

/** nginx and PHP-FPM with their own configuration, connected by a private Unix socket. */
final readonly class Fpm
{
    /** Default number of PHP processes. */
    public const WORKERS = 2;

    /** Folders that are often missing from a user's PATH. */
    private const FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

    public static function missing(): ?string
    {
        return match (null) {
            self::nginx() => 'nginx is not installed',
            self::fpm() => 'php-fpm is not installed',
            default => null,
        };
    }

    /** @return string versions and relevant settings */
    public static function describe(): string
    {
        $nginx = trim(self::output([(string) self::nginx(), '-v']));
        $fpm = self::output([...self::command(), '-i']);
        $opcache = preg_match('/^opcache\.enable => On/m', $fpm) === 1 ? 'with' : 'without';

        return strtr($nginx, ['nginx version: ' => ''])
            . ', PHP '
            . (preg_match('/^PHP Version => (\S+)/m', $fpm, $match) === 1 ? $match[1] : '?')
            . " {$opcache} OPcache";
    }

    /** Returns whether FPM's PHP has an extension. */
    public static function has(string $extension): bool
    {
        return preg_match("/^{$extension}$/m", self::output([...self::command(), '-m'])) === 1;
    }

    /** @return list<non-empty-list<string>> */
    public static function commands(FpmPool $pool, PrivateDirectory $directory): array
    {
        $nginx = $directory->write('nginx.conf', self::nginxConfiguration($pool, $directory));
        $fpm = $directory->write('fpm.conf', self::fpmConfiguration($pool, $directory));

        return [
            [...self::command(), ...$pool->options, '-F', '-y', $fpm, ...(self::isRoot() ? ['-R'] : [])],
            [(string) self::nginx(), '-p', $directory->path, '-e', "{$directory->path}/nginx.log", '-c', $nginx],
        ];
    }

    private static function fpmConfiguration(FpmPool $pool, PrivateDirectory $directory): string
    {
        $backlog = Site::BACKLOG;
        $environment = '';
        foreach ($pool->environment as $name => $value) {
            $environment .= "env[{$name}] = \"" . addcslashes($value, '"\\') . "\"\n";
        }

        return <<<INI
            [global]
            error_log = {$directory->path}/fpm.log
            [pages]
            listen = {$directory->path}/fpm.sock
            listen.backlog = {$backlog}
            pm = static
            pm.max_children = {$pool->workers}
            {$environment}
            INI;
    }

    private static function nginxConfiguration(FpmPool $pool, PrivateDirectory $directory): string
    {
        // A master that runs as root gives its workers another user, which could not enter the directory.
        $user = self::isRoot() ? 'user root;' : '';
        $listen = $pool->address . ($pool->certificate !== null ? ' ssl' : '') . ' backlog=' . Site::BACKLOG;
        $tls = $pool->certificate !== null
            ? "ssl_certificate {$pool->certificate}; ssl_certificate_key {$pool->key};"
            : '';

        return <<<NGINX
            daemon off;
            {$user}
            worker_processes {$pool->nginx};
            pid {$directory->path}/nginx.pid;
            error_log {$directory->path}/nginx.log;
            events { worker_connections 2048; }
            http {
                access_log off;
                keepalive_requests 1000000000;
                client_header_timeout {$pool->deadline}s;
                client_max_body_size 0;
                fastcgi_read_timeout 600s;
                client_body_temp_path {$directory->path}/nginx.body;
                proxy_temp_path {$directory->path}/nginx.proxy;
                fastcgi_temp_path {$directory->path}/nginx.fastcgi;
                uwsgi_temp_path {$directory->path}/nginx.uwsgi;
                scgi_temp_path {$directory->path}/nginx.scgi;
                server {
                    listen {$listen};
                    {$tls}
                    location / {
                        fastcgi_pass unix:{$directory->path}/fpm.sock;
                        fastcgi_param SCRIPT_FILENAME {$pool->page};
                        fastcgi_param QUERY_STRING \$query_string;
                        fastcgi_param REQUEST_METHOD \$request_method;
                        fastcgi_param REQUEST_URI \$request_uri;
                        fastcgi_param CONTENT_TYPE \$content_type;
                        fastcgi_param CONTENT_LENGTH \$content_length;
                        fastcgi_param SERVER_PROTOCOL \$server_protocol;
                        fastcgi_param REMOTE_ADDR \$remote_addr;
                    }
                }
            }
            NGINX;
    }

    private static function nginx(): ?string
    {
        return self::find('nginx');
    }

    private static function fpm(): ?string
    {
        return self::find('php-fpm' . \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION) ?? self::find('php-fpm');
    }

    /** @return non-empty-list<string> */
    private static function command(): array
    {
        return [(string) self::fpm(), ...Program::PHP_OPTIONS, '-d', 'opcache.enable=1'];
    }

    private static function find(string $name): ?string
    {
        $found = array_filter(
            array_map(static fn(string $folder): string => "{$folder}/{$name}", self::FOLDERS),
            is_executable(...),
        );

        return Program::find($name) ?? array_values($found)[0] ?? null;
    }

    /** @param non-empty-list<string> $command */
    private static function output(array $command): string
    {
        return Program::run(['/bin/sh', '-c', '"$@" 2>&1', 'sh', ...$command])[1];
    }

    private static function isRoot(): bool
    {
        return posix_geteuid() === 0;
    }
}
