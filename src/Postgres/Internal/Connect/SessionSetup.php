<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSession;

/** Statements that set up a session. Poolers refuse unknown parameters in the startup message. */
final class SessionSetup
{
    private const ROLE_QUERY = 'select pg_catalog.pg_is_in_recovery(), '
        . "pg_catalog.current_setting('transaction_read_only')";

    /** Milliseconds after which a busy server checks whether the client is still connected. */
    private const CHECK_INTERVAL_MILLISECONDS = '2000';

    private const CHECK_INTERVAL_SETTING = 'client_connection_check_interval';

    /** The start as seconds since 1970, which does not depend on TimeZone. */
    private const START_TIME_EXPRESSION = "pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())";

    /** Settings that may make results unreadable or inexact: condition for a bad value, and its replacement. */
    private const SETTING_CORRECTIONS = [
        'IntervalStyle' => ["in ('sql_standard', 'postgres_verbose')", 'postgres'],
        'extra_float_digits' => ["in ('0') or pg_catalog.current_setting('extra_float_digits') like '-%'", '1'],
        'array_nulls' => ["= 'off'", 'on'],
    ];

    private ?int $roleIndex = null;

    private ?int $settingsIndex = null;

    private ?int $processIndex = null;

    /** @var list<string> */
    private array $statements = [];

    /** @param array<string, string> $parameters parameters that the server reported */
    public function __construct(
        private readonly PostgresOptions $options,
        private readonly TargetSession $target,
        private readonly array $parameters,
        int $pid,
    ) {
        if (
            $target !== TargetSession::Any
            && !isset($parameters['in_hot_standby'], $parameters['default_transaction_read_only'])
        ) {
            $this->roleIndex = $this->add(self::ROLE_QUERY);
        }
        if ($this->version() >= 14) {
            $isOwn = "pg_catalog.pg_backend_pid() = {$pid}";
            // Only set in the server's own process: behind a pooler the setting would stay for the next client. A
            // server whose system does not support it returns an error, which does no harm.
            $check = isset($options->settings[self::CHECK_INTERVAL_SETTING])
                ? ''
                : ", case when {$isOwn} and pg_catalog.current_setting('"
                . self::CHECK_INTERVAL_SETTING
                . "', true) = '0' then "
                . self::assignment(self::CHECK_INTERVAL_SETTING, self::CHECK_INTERVAL_MILLISECONDS)
                . ' end';
            $this->processIndex = $this->add("select {$isOwn}, " . self::START_TIME_EXPRESSION . $check);
        }
        if ($this->version() >= 12 && isset($parameters['IntervalStyle'])) {
            $this->add(
                'select ' . implode(
                    ', ',
                    array_map(
                        static fn(string $name): string => self::correction($name, $pid),
                        array_keys(self::SETTING_CORRECTIONS),
                    ),
                ),
            );
        }
        $settings = $this->settings();
        if ($settings !== []) {
            $this->settingsIndex = $this->add(
                'select ' . implode(', ', array_map(self::assignment(...), array_keys($settings), $settings)),
            );
        }
    }

    /** @return list<string> */
    public function statements(): array
    {
        return $this->statements;
    }

    /** Whether another process answers than the login named, as behind a pooler. */
    public function isPooled(Answers $answers): bool
    {
        return $this->processIndex !== null && ($answers->rows($this->processIndex)[0][0] ?? 't') === 'f';
    }

    /** Returns when the server was started, which identifies it; null when the server does not report it. */
    public function serverStartTime(Answers $answers): ?string
    {
        return $this->processIndex === null ? null : $answers->rows($this->processIndex)[0][1] ?? null;
    }

    /** @throws AttemptFailedException when the session is not of the requested kind, or a setting is refused */
    public function check(Answers $answers): void
    {
        $error = ($this->roleIndex === null ? null : $answers->error($this->roleIndex))
            ?? ($this->settingsIndex === null ? null : $answers->error($this->settingsIndex));
        if ($error !== null) {
            throw AttemptFailedException::refused($error);
        }
        $row = $this->roleIndex === null ? [] : $answers->rows($this->roleIndex)[0] ?? [];
        $this->checkRole(
            $this->roleIndex === null ? ($this->parameters['in_hot_standby'] ?? '') === 'on' : ($row[0] ?? '') === 't',
            $this->roleIndex === null
                ? ($this->parameters['default_transaction_read_only'] ?? '') === 'on'
                : ($row[1] ?? '') === 'on',
        );
    }

    private function checkRole(bool $isStandby, bool $isReadOnly): void
    {
        $suits = match ($this->target) {
            TargetSession::Any, TargetSession::PreferStandby => true,
            TargetSession::ReadWrite => !$isStandby && !$isReadOnly,
            TargetSession::ReadOnly => $isStandby || $isReadOnly,
            TargetSession::Primary => !$isStandby,
            TargetSession::Standby => $isStandby,
        };
        if (!$suits) {
            $is = $isStandby ? 'a standby' : 'a primary' . ($isReadOnly ? ' whose transactions are read-only' : '');
            throw AttemptFailedException::unsuitable("the server is {$is}, but '{$this->target->value}' was requested");
        }
    }

    /** @return array<string, string> */
    private function settings(): array
    {
        $settings = $this->options->settings;
        if ($this->version() >= 9 && $this->version() < 12) {
            // Since version 12 floats are exact without this setting.
            $settings += ['extra_float_digits' => '3'];
        }
        if ($this->options->statementTimeout !== null) {
            $settings['statement_timeout'] = (string) (int) ceil($this->options->statementTimeout * 1000);
        }

        return $settings;
    }

    /** Returns an expression that replaces a bad value. It only acts in the server's own process. */
    private static function correction(string $name, int $pid): string
    {
        [$condition, $value] = self::SETTING_CORRECTIONS[$name];

        return "case when pg_catalog.pg_backend_pid() = {$pid} "
            . "and (pg_catalog.current_setting('{$name}') {$condition}) then "
            . self::assignment($name, $value)
            . ' end';
    }

    /** Returns the major version. A server that does not report it counts as a new one. */
    private function version(): int
    {
        return (int) ($this->parameters['server_version'] ?? '99');
    }

    private function add(string $statement): int
    {
        $this->statements[] = $statement;

        return \count($this->statements) - 1;
    }

    private static function assignment(string $name, string $value): string
    {
        return 'pg_catalog.set_config(' . self::literal($name) . ', ' . self::literal($value) . ', false)';
    }

    /** Quotes a literal so that it is valid with any standard_conforming_strings. */
    private static function literal(string $text): string
    {
        return "E'" . strtr($text, ["'" => "''", '\\' => '\\\\']) . "'";
    }
}
