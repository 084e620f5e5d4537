<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSessionAttrs;

/**
 * Builds the statements that set up a session and query its state, and checks their answers. The settings are assigned
 * by statements and not by the startup message, because poolers refuse unknown parameters in a startup message.
 */
final class SessionSetup
{
    /** Parameters by which servers since version 14 report their role during the login. */
    public const ROLE_PARAMETERS = ['in_hot_standby', 'default_transaction_read_only'];

    /** Query that returns whether the server is a standby, and whether its transactions are read-only. */
    private const ROLE_QUERY = 'select pg_catalog.pg_is_in_recovery(), '
        . "pg_catalog.current_setting('transaction_read_only')";

    /** Interval in milliseconds at which a server checks, during a statement, whether the client is connected. */
    private const CHECK_INTERVAL_MILLISECONDS = '2000';

    private const CHECK_INTERVAL_SETTING = 'client_connection_check_interval';

    /** Expression for the time at which the server was started: seconds since 1970, independent of TimeZone. */
    private const START_TIME_EXPRESSION = "pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())";

    /** Settings whose bad values make results or parameters wrong: SQL condition for bad values, and a good value. */
    private const SETTING_CORRECTIONS = [
        'IntervalStyle' => ["in ('sql_standard', 'postgres_verbose')", 'postgres'],
        'extra_float_digits' => ["in ('0') or pg_catalog.current_setting('extra_float_digits') like '-%'", '1'],
        'array_nulls' => ["= 'off'", 'on'],
    ];

    /** Index of the query for the server's role; null if every role is accepted, or the role is already known. */
    private ?int $roleIndex = null;

    /** Index of the statement that assigns {@see settings()}; null if there are none. */
    private ?int $settingsIndex = null;

    /** Index of the query for {@see isPooled()} and {@see serverStartTime()}; null for servers before version 14. */
    private ?int $serverIndex = null;

    /** Index of the query that corrects settings; null if the constructor adds no such query. */
    private ?int $correctionIndex = null;

    /** @var list<string> statements to execute */
    public array $statements = [];

    /**
     * @param array<string, string> $parameters parameters that the server has reported
     * @param bool $hasRefusedCheck whether the server has refused the check interval. If a reset contained this setting
     *     again, the error would undo the whole reset
     */
    public function __construct(
        private readonly PostgresOptions $options,
        private readonly TargetSessionAttrs $target,
        private readonly array $parameters,
        int $pid,
        bool $hasRefusedCheck = false,
    ) {
        if (
            $target !== TargetSessionAttrs::Any
            && !isset($parameters['in_hot_standby'], $parameters['default_transaction_read_only'])
        ) {
            $this->roleIndex = $this->add(self::ROLE_QUERY);
        }
        if ($this->version() >= 14 && !$hasRefusedCheck) {
            $isOwn = "pg_catalog.pg_backend_pid() = {$pid}";
            // The check interval stays unchanged behind a pooler, because a change would also affect other clients. If
            // the server's operating system does not support the check, the server returns an error, which is ignored.
            $check = isset($options->settings[self::CHECK_INTERVAL_SETTING])
                ? ''
                : ", case when {$isOwn} and pg_catalog.current_setting('"
                . self::CHECK_INTERVAL_SETTING
                . "', true) = '0' then "
                . self::assignment(self::CHECK_INTERVAL_SETTING, self::CHECK_INTERVAL_MILLISECONDS)
                . ' end';
            $this->serverIndex = $this->add("select {$isOwn}, " . self::START_TIME_EXPRESSION . $check);
        }
        $corrected = array_udiff(
            array_keys(self::SETTING_CORRECTIONS),
            array_map(strval(...), array_keys($options->settings)),
            strcasecmp(...),
        );
        if ($this->version() >= 12 && isset($parameters['IntervalStyle']) && $corrected !== []) {
            $this->correctionIndex = $this->add('select ' . implode(', ', array_map(
                static fn(string $name): string => self::correction($name, $pid),
                $corrected,
            )));
        }
        $settings = $this->settings();
        if ($settings !== []) {
            $this->settingsIndex = $this->add(
                'select ' . implode(', ', array_map(self::assignment(...), array_keys($settings), $settings)),
            );
        }
    }

    /** Returns whether the answers came from a different server process than the login, as happens behind a pooler. */
    public function isPooled(SimpleQueries $answers): bool
    {
        return $this->serverIndex !== null && ($answers->rows($this->serverIndex)[0][0] ?? 't') === 'f';
    }

    /** Returns when the server was started, to identify the server. Null before version 14, or if the query failed. */
    public function serverStartTime(SimpleQueries $answers): ?string
    {
        return $this->serverIndex === null ? null : $answers->rows($this->serverIndex)[0][1] ?? null;
    }

    /** @throws AttemptFailedException when the session does not match `$target`, or a setting was refused or is bad */
    public function check(SimpleQueries $answers): void
    {
        $error = ($this->roleIndex === null ? null : $answers->error($this->roleIndex))
            ?? ($this->settingsIndex === null ? null : $answers->error($this->settingsIndex));
        if ($error !== null) {
            throw AttemptFailedException::refused($error);
        }
        $this->checkCorrections($answers);
        $row = $this->roleIndex === null ? [] : $answers->rows($this->roleIndex)[0] ?? [];
        $this->checkRole(
            $this->roleIndex === null ? ($this->parameters['in_hot_standby'] ?? '') === 'on' : ($row[0] ?? '') === 't',
            $this->roleIndex === null
                ? ($this->parameters['default_transaction_read_only'] ?? '') === 'on'
                : ($row[1] ?? '') === 'on',
        );
    }

    /** @throws AttemptFailedException when a setting has a bad value that can't be corrected behind a pooler */
    private function checkCorrections(SimpleQueries $answers): void
    {
        foreach ($this->correctionIndex === null ? [] : $answers->rows($this->correctionIndex)[0] ?? [] as $name) {
            if ($name !== null && isset(self::SETTING_CORRECTIONS[$name])) {
                throw AttemptFailedException::uncorrectableSetting($name, self::SETTING_CORRECTIONS[$name][1]);
            }
        }
    }

    /** @throws AttemptFailedException when the server does not match `$target` */
    private function checkRole(bool $isStandby, bool $isReadOnly): void
    {
        $suits = match ($this->target) {
            TargetSessionAttrs::Any, TargetSessionAttrs::PreferStandby => true,
            TargetSessionAttrs::ReadWrite => !$isStandby && !$isReadOnly,
            TargetSessionAttrs::ReadOnly => $isStandby || $isReadOnly,
            TargetSessionAttrs::Primary => !$isStandby,
            TargetSessionAttrs::Standby => $isStandby,
        };
        if (!$suits) {
            $is = $isStandby ? 'a standby' : 'a primary' . ($isReadOnly ? ' whose transactions are read-only' : '');
            throw AttemptFailedException::unsuitable("the server is {$is}, but '{$this->target->value}' was requested");
        }
    }

    /** @return array<string, string> settings and statement timeout, and extra_float_digits for old servers */
    private function settings(): array
    {
        $settings = $this->options->settings;
        if ($this->version() >= 9 && $this->version() < 12) {
            // Since version 12, floats are exact without this setting.
            $settings += ['extra_float_digits' => '3'];
        }
        if ($this->options->statementTimeout !== null) {
            $settings['statement_timeout'] = (string) (int) ceil($this->options->statementTimeout * 1000);
        }

        return $settings;
    }

    /**
     * Returns an expression that replaces a bad value of a setting. Behind a pooler, a change would also affect other
     * clients. So the expression then changes nothing, and its result is the setting's name.
     */
    private static function correction(string $name, int $pid): string
    {
        [$condition, $value] = self::SETTING_CORRECTIONS[$name];

        return "case when not (pg_catalog.current_setting('{$name}') {$condition}) then null "
            . "when pg_catalog.pg_backend_pid() = {$pid} then "
            . self::assignment($name, $value)
            . " else '{$name}' end";
    }

    /** Returns the server's major version; 99 if the server does not report its version. */
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

    /** Quotes a literal in a form on which standard_conforming_strings has no effect. */
    private static function literal(string $text): string
    {
        return "E'" . strtr($text, ["'" => "''", '\\' => '\\\\']) . "'";
    }
}
