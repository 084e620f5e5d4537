<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Warnings;
use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ChannelBinding;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\TlsMode;

/**
 * Translates libpq's keywords and environment variables to options.
 *
 * @see https://www.postgresql.org/docs/current/libpq-envars.html
 */
final class Keywords
{
    /** For each keyword, the environment variable that contains its default. */
    private const ENVIRONMENT_VARIABLES = [
        'host' => 'PGHOST',
        'hostaddr' => 'PGHOSTADDR',
        'port' => 'PGPORT',
        'user' => 'PGUSER',
        'password' => 'PGPASSWORD',
        'passfile' => 'PGPASSFILE',
        'dbname' => 'PGDATABASE',
        'sslmode' => 'PGSSLMODE',
        'sslrootcert' => 'PGSSLROOTCERT',
        'sslcert' => 'PGSSLCERT',
        'sslkey' => 'PGSSLKEY',
        'connect_timeout' => 'PGCONNECT_TIMEOUT',
        'target_session_attrs' => 'PGTARGETSESSIONATTRS',
        'application_name' => 'PGAPPNAME',
        'options' => 'PGOPTIONS',
        'channel_binding' => 'PGCHANNELBINDING',
        'require_auth' => 'PGREQUIREAUTH',
    ];

    /** Keywords for which only these values are allowed, because the client has no other behavior. */
    private const FIXED_VALUES = [
        'client_encoding' => ['utf8', 'utf-8', 'auto'],
        'gssencmode' => ['disable', 'prefer'],
        'load_balance_hosts' => ['disable'],
        'sslcompression' => ['0'],
        'sslnegotiation' => ['postgres'],
        'sslsni' => ['1'],
    ];

    /**
     * Returns the options that the keywords describe. Missing or empty values come from environment variables.
     *
     * @param array<string, string> $given values by libpq's keywords
     *
     * @throws \ValueError when a keyword is unknown, or a value is invalid
     */
    public static function options(#[\SensitiveParameter] array $given): PostgresOptions
    {
        self::check($given);
        $values = self::withEnvironment(array_filter($given, static fn(string $value): bool => $value !== ''));
        $tls = self::tlsOptions($values);

        return new PostgresOptions(
            hosts: self::hosts($values['host'] ?? '', $values['hostaddr'] ?? '', $values['port'] ?? ''),
            user: $values['user'] ?? null,
            password: isset($values['password']) ? new \SensitiveParameterValue($values['password']) : null,
            database: $values['dbname'] ?? null,
            tls: $tls['mode'],
            tlsCaFile: $tls['root'],
            tlsCertificate: $values['sslcert'] ?? null,
            tlsKey: $values['sslkey'] ?? null,
            targetSessionAttrs: self::choice(TargetSessionAttrs::class, 'target_session_attrs', $values)
                ?? TargetSessionAttrs::Any,
            connectTimeout: self::timeout($values['connect_timeout'] ?? null),
            applicationName: $values['application_name'] ?? $values['fallback_application_name'] ?? '',
            settings: CommandLineOptions::settings($values['options'] ?? ''),
            authentication: self::authentication($values['require_auth'] ?? ''),
            channelBinding: self::choice(ChannelBinding::class, 'channel_binding', $values) ?? ChannelBinding::Prefer,
            passwordFile: $values['passfile'] ?? self::homePasswordFile(),
        );
    }

    /**
     * @param array<string, string> $values
     *
     * @return array{mode: ?TlsMode, root: ?string} mode: null if not set; root: null for the system's certificates
     *
     * @throws \ValueError when the mode is unknown, or too weak for the system's certificates
     */
    private static function tlsOptions(#[\SensitiveParameter] array $values): array
    {
        $root = $values['sslrootcert'] ?? null;
        $mode = self::tls($values['sslmode'] ?? null);
        if ($root !== 'system') {
            return ['mode' => $mode, 'root' => $root];
        }
        if (($mode ?? TlsMode::VerifyFull) !== TlsMode::VerifyFull) {
            throw new \ValueError(
                "In a PostgreSQL DSN with 'sslrootcert=system', 'sslmode' must be verify-full: the authorities of the "
                    . 'system sign certificates for all servers, so the name in the certificate must be checked',
            );
        }

        return ['mode' => TlsMode::VerifyFull, 'root' => null];
    }

    /**
     * @param array<string, string> $given
     *
     * @throws \ValueError when a keyword is unknown, or its value is not one of {@see FIXED_VALUES}
     */
    private static function check(#[\SensitiveParameter] array $given): void
    {
        foreach ($given as $key => $value) {
            if (\in_array(strtolower($value), self::FIXED_VALUES[$key] ?? [], true)) {
                continue;
            }
            if (isset(self::FIXED_VALUES[$key])) {
                throw new \ValueError(
                    "In a PostgreSQL DSN, '{$key}' must be "
                        . implode(' or ', self::FIXED_VALUES[$key])
                        . ", not '{$value}'",
                );
            }
            if (!isset(self::ENVIRONMENT_VARIABLES[$key]) && $key !== 'fallback_application_name') {
                throw new \ValueError(
                    "The key '{$key}' in the PostgreSQL DSN is unknown. Known keys are: "
                        . implode(', ', array_keys(self::ENVIRONMENT_VARIABLES)),
                );
            }
        }
    }

    /**
     * @param array<string, string> $values
     *
     * @return array<string, string>
     */
    private static function withEnvironment(#[\SensitiveParameter] array $values): array
    {
        // PGSERVICE names a service, whose host libpq reads from a service file. This client does not read that file.
        // Without this check, the client would connect to another host.
        if (!isset($values['host']) && !isset($values['hostaddr']) && (string) getenv('PGSERVICE') !== '') {
            throw new \ValueError('PGSERVICE is set, but service files are not supported. Set the host in the DSN');
        }
        foreach (self::ENVIRONMENT_VARIABLES as $key => $name) {
            // If the connection string contains host or hostaddr, neither of the two comes from a variable. If host
            // came from PGHOST ($fromEnvironment is set), hostaddr may come from PGHOSTADDR.
            $isSet = isset($values[$key])
                || \in_array($key, ['host', 'hostaddr'], true)
                && (isset($values['host']) || isset($values['hostaddr']))
                && !isset($fromEnvironment);
            $value = getenv($name);
            if (!$isSet && \is_string($value) && $value !== '') {
                $values[$key] = $value;
                $fromEnvironment = true;
            }
        }

        return $values;
    }

    /** @return list<PostgresHost> hosts with their addresses and ports, from comma-separated lists */
    private static function hosts(#[\SensitiveParameter] string $hosts, string $addresses, string $ports): array
    {
        if ($hosts === '' && $addresses === '') {
            $default = new PostgresOptions(user: '-');

            return array_map(
                static fn(PostgresHost $host) => new PostgresHost($host->host, self::port($ports)),
                $default->hosts,
            );
        }
        $hosts = explode(',', $hosts === '' ? $addresses : $hosts);
        $addresses = $addresses === '' ? [] : explode(',', $addresses);
        $ports = explode(',', $ports);
        if (
            $addresses !== [] && \count($addresses) !== \count($hosts)
            || \count($ports) > 1 && \count($ports) !== \count($hosts)
        ) {
            throw new \ValueError(
                'In a PostgreSQL DSN, the lists host, hostaddr and port must have the same length. '
                    . 'A single port applies to all hosts',
            );
        }

        $list = [];
        foreach ($hosts as $at => $host) {
            $address = trim($addresses[$at] ?? '');
            $list[] = new PostgresHost(
                trim($host),
                self::port($ports[$at] ?? $ports[0]),
                $address === '' ? null : $address,
            );
        }

        return $list;
    }

    private static function port(string $text): int
    {
        if (preg_match('~^\s*([0-9]{1,5})?\s*$~D', $text, $part) !== 1) {
            throw new \ValueError(
                'The port of a PostgreSQL server must be a number from 1 to 65535, not '
                    . json_encode($text, \JSON_INVALID_UTF8_SUBSTITUTE),
            );
        }

        return isset($part[1]) ? (int) $part[1] : PostgresHost::DEFAULT_PORT;
    }

    private static function tls(?string $mode): ?TlsMode
    {
        return $mode === 'allow'
            ? TlsMode::Prefer
            : self::choice(TlsMode::class, 'sslmode', $mode === null ? [] : ['sslmode' => $mode]);
    }

    /**
     * @template T of \BackedEnum
     *
     * @param class-string<T> $enum
     * @param array<string, string> $values
     *
     * @return T|null null if the keyword has no value
     *
     * @throws \ValueError when the enum has no case with this value
     */
    private static function choice(string $enum, string $key, #[\SensitiveParameter] array $values): ?\BackedEnum
    {
        if (!isset($values[$key])) {
            return null;
        }

        return $enum::tryFrom($values[$key])
            ?? throw new \ValueError(
                "In a PostgreSQL DSN, '{$key}' must be "
                    . implode(' or ', array_column($enum::cases(), 'value'))
                    . ', not '
                    . json_encode($values[$key], \JSON_INVALID_UTF8_SUBSTITUTE),
            );
    }

    private static function timeout(?string $seconds): float
    {
        if ($seconds === null) {
            return 10.0;
        }
        if (!is_numeric($seconds)) {
            throw new \ValueError(
                "In a PostgreSQL DSN, 'connect_timeout' must be a number of seconds, not "
                    . json_encode($seconds, \JSON_INVALID_UTF8_SUBSTITUTE),
            );
        }

        // In libpq, zero and negative numbers mean no limit.
        return (float) $seconds > 0 ? (float) $seconds : \INF;
    }

    /** @return list<AuthenticationMethod> the listed methods; with "!", the default methods except the listed ones */
    private static function authentication(string $list): array
    {
        $default = [AuthenticationMethod::None, AuthenticationMethod::Scram];
        if ($list === '') {
            return $default;
        }
        $allowed = $refused = [];
        foreach (explode(',', $list) as $name) {
            $name = trim($name);
            $method = ltrim($name, '!');
            if (str_starts_with($name, '!')) {
                $refused[] = \in_array($method, ['gss', 'sspi', 'oauth'], true)
                    ? null
                    : self::choice(AuthenticationMethod::class, 'require_auth', ['require_auth' => $method]);
            } else {
                $allowed[] = self::choice(AuthenticationMethod::class, 'require_auth', ['require_auth' => $method]);
            }
        }
        if ($allowed !== [] && $refused !== []) {
            throw new \ValueError(
                "In a PostgreSQL DSN, 'require_auth' must list allowed methods, or refused ones with '!', not both",
            );
        }

        return array_values(array_filter(
            $allowed !== [] ? $allowed : $default,
            static fn(?AuthenticationMethod $method): bool => $method !== null && !\in_array($method, $refused, true),
        ));
    }

    private static function homePasswordFile(): ?string
    {
        $home = getenv('HOME');
        $file = \is_string($home) && $home !== '' ? "{$home}/.pgpass" : null;

        return $file !== null && Warnings::suppressed(static fn(): bool => is_file($file)) ? $file : null;
    }
}
