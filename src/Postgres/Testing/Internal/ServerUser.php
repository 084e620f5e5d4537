<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Testing\Program;
use Spindle\Postgres\Testing\TemporaryPostgresException;

/** The user that runs the server: the user of this process, or an unprivileged user if this process runs as root. */
final class ServerUser
{
    private const UNPRIVILEGED_USERS = ['postgres', 'nobody'];

    private static ?self $found = null;

    /**
     * @param list<string> $prefix command that runs its further arguments as this user; empty for this process's user
     * @param array{int, int}|null $ids ids of user and group; null for those of this process
     */
    private function __construct(private readonly array $prefix, private readonly ?array $ids) {}

    /** @throws TemporaryPostgresException when this process runs as root and can not start programs as another user */
    public static function find(): self
    {
        return self::$found ??= self::isRoot() ? self::unprivileged() : new self([], null);
    }

    /**
     * @param list<string> $command
     *
     * @return list<string> command that runs `$command` as this user
     */
    public function command(array $command): array
    {
        return [...$this->prefix, ...$command];
    }

    public function makeOwnerOf(string $path): void
    {
        if ($this->ids !== null) {
            chown($path, $this->ids[0]);
            chgrp($path, $this->ids[1]);
        }
    }

    private static function isRoot(): bool
    {
        return \function_exists('posix_geteuid') ? posix_geteuid() === 0 : Program::run(['id', '-u'])[1] === '0';
    }

    private static function unprivileged(): self
    {
        $reasons = '';
        foreach (self::UNPRIVILEGED_USERS as $name) {
            [$exitCode, $user] = Program::run(['id', '-u', $name]);
            if ($exitCode !== 0) {
                $reasons .= "{$user}\n";

                continue;
            }
            $group = Program::run(['id', '-g', $name])[1];
            foreach (self::switchCommands($name, $user, $group) as $prefix) {
                [$exitCode, $output] = Program::run([...$prefix, 'true']);
                if ($exitCode === 0) {
                    return new self($prefix, [(int) $user, (int) $group]);
                }
                $reasons .= "{$output}\n";
            }
        }

        throw TemporaryPostgresException::noUser(trim($reasons));
    }

    /**
     * @return list<list<string>> possible values of `$prefix`. setpriv comes first, because it replaces itself with the
     *     command. runuser and su can stay as parent processes of the command
     */
    private static function switchCommands(string $name, string $user, string $group): array
    {
        return [
            ['setpriv', "--reuid={$user}", "--regid={$group}", '--clear-groups', '--'],
            ['runuser', '-u', $name, '--'],
            ['su', '-s', '/bin/sh', '-c', 'exec "$@"', '--', $name, 'sh'],
        ];
    }
}
