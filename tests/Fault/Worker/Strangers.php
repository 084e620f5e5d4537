<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\Text;

/** Finds the sockets to which the workers of this process connect, as any process on the machine can. */
final class Strangers
{
    /** @return list<string> addresses of sockets */
    public static function addresses(): array
    {
        $inodes = [];
        foreach (Text::names('/proc/self/fd') as $descriptor) {
            if (preg_match('/^socket:\[(\d+)\]$/', (string) @readlink("/proc/self/fd/{$descriptor}"), $match) === 1) {
                $inodes[$match[1]] = true;
            }
        }
        $addresses = [];
        foreach (Text::lines('/proc/net/unix') as $line) {
            $fields = (array) preg_split('/\s+/', trim($line));
            if (isset($inodes[$fields[6] ?? '']) && str_starts_with((string) ($fields[7] ?? ''), '@spindle-')) {
                $addresses[] = "unix://\0" . substr((string) $fields[7], 1);
            }
        }

        return array_values(array_unique($addresses));
    }

    /**
     * Connects many times from another process, and again after each disconnect, until its standard input is closed.
     *
     * @return array{resource, resource} the process, and its standard input
     */
    public static function besiege(string $address, int $count): array
    {
        $program = <<<'PHP'
            [, $address, $count] = $argv;
            $strangers = [];
            echo '.';
            do {
                while (
                    count($strangers) < $count
                    && ($stranger = @stream_socket_client("unix://\0{$address}", timeout: 1.0)) !== false
                ) {
                    stream_set_blocking($stranger, false);
                    $strangers[] = $stranger;
                }
                foreach ($strangers as $i => $stranger) {
                    fread($stranger, 1);
                    if (feof($stranger)) {
                        unset($strangers[$i]);
                    }
                }
                [$reads, $none] = [[STDIN], null];
            } while (stream_select($reads, $none, $none, 0, 20_000) === 0);
            PHP;
        $process = proc_open(
            [\PHP_BINARY, '-r', $program, substr($address, 8), (string) $count],
            [['pipe', 'r'], ['pipe', 'w']],
            $pipes,
        );
        \assert(\is_resource($process));
        /** @var array{resource, resource} $pipes */
        fread($pipes[1], 1);
        fclose($pipes[1]);

        return [$process, $pipes[0]];
    }
}
