<?php

declare(strict_types=1);

/*
 * The launcher: a process that starts and watches the commands of one pool. It exits after the pool has ended.
 *
 * - Arguments: the token of this launcher, the pid of the pool's process, the start method (auto, posix_spawn or
 *   proc_open), the path prefix of the temporary files that the pool's process creates, and the pool's version.
 * - Descriptors: frames from the pool (0), frames to the pool (1), and the standard error (2) and standard output (3)
 *   of the pool's process.
 */

use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\Process\Backend;
use Spindle\Internal\Launcher\Process\JobScheduler;
use Spindle\Internal\Launcher\Process\Leftovers;
use Spindle\Internal\Launcher\Process\ProcOpenBackend;
use Spindle\Internal\Launcher\Process\SpawnBackend;

// The launcher has no autoloader, so that the process stays small and starts in milliseconds.
require dirname(__DIR__, 2) . '/FrameHandler.php';
require dirname(__DIR__, 2) . '/FrameReader.php';
require dirname(__DIR__, 2) . '/MalformedFrameException.php';
require dirname(__DIR__) . '/LauncherProtocol.php';
// The files are listed, because the folder may also have files of another version or of a tool.
foreach ([
    'ArgumentSize', 'Backend', 'Epoll', 'Files', 'JobScheduler', 'JobTermination', 'JobTrees', 'LauncherJob',
    'Leftovers', 'Libc', 'OutgoingFrames', 'ProcOpenBackend', 'ProcessOpener', 'ProcessTree', 'Programs', 'Signals',
    'SpawnBackend', 'Spawner', 'StartFailure', 'UnusableProgram', 'Vector', 'WaitingJobs',
] as $class) {
    require __DIR__ . "/{$class}.php";
}

set_error_handler(static function (int $level, string $message, string $file, int $line): bool {
    if ((error_reporting() & $level) === 0) {
        return false;
    }

    throw new ErrorException($message, 0, $level, $file, $line);
});

/** @var non-empty-list<string> $argv */
[, $token, $pool, $startMethod, $temporaryFilePrefix, $version] = $argv + [5 => ''];

$backend = static function (JobScheduler $scheduler) use ($token, $pool, $startMethod): Backend {
    if ($startMethod !== 'proc_open' && extension_loaded('FFI')) {
        try {
            return new SpawnBackend($scheduler, $token, (int) $pool);
        } catch (FFI\Exception $missing) {
            // The C library lacks a function that SpawnBackend needs, as on macOS.
            if ($startMethod === 'posix_spawn') {
                throw $missing;
            }
        }
    }
    if ($startMethod === 'posix_spawn') {
        throw new RuntimeException(
            'StartMethod::PosixSpawn needs ext-ffi, which this PHP cannot load. Install or enable it, or use'
            . ' StartMethod::Auto',
        );
    }

    return new ProcOpenBackend($scheduler, $token, (int) $pool);
};

try {
    if ($version !== LauncherProtocol::VERSION) {
        throw new RuntimeException(
            "the pool's process has loaded Spindle {$version}, but the files on disk are of Spindle "
                . LauncherProtocol::VERSION
                . ', as after a deployment. Restart the process, or PHP-FPM',
        );
    }
    $scheduler = new JobScheduler($backend, $token);
    $scheduler->run();
    Leftovers::remove((int) $pool, $temporaryFilePrefix);
} catch (Throwable $failure) {
    fwrite(
        STDOUT,
        LauncherProtocol::frame(
            LauncherProtocol::FAILED,
            0,
            $failure::class . ": {$failure->getMessage()} in {$failure->getFile()}:{$failure->getLine()}",
        ),
    );
    exit(1);
}
