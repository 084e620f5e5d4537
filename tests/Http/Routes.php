<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\UploadedFileInterface;
use Revolt\EventLoop;
use Spindle\Http\Response;

use function Amp\async;
use function Amp\delay;

/** Handlers for {@see ServerProcess}, including faulty ones. */
final class Routes
{
    private const MIB = 1_048_576;

    public static function handle(ServerRequestInterface $request): Response
    {
        [$path, $query] = explode('?', $request->getRequestTarget()) + [1 => ''];

        return match ($path) {
            '/wait' => self::wait((float) $query),
            '/stream' => Response::stream(self::pieces((float) $query)),
            '/exit' => exit((int) $query),
            '/stream-exit' => Response::stream(self::piecesBeforeExit((int) $query)),
            '/exit-later' => self::exitLater((float) $query),
            '/memory' => self::fill(),
            '/memory-later' => self::fillLater((float) $query),
            '/hang' => self::hang(),
            '/sleep' => self::sleep((float) $query),
            '/throw' => throw new \RuntimeException('from a handler'),
            '/fiber-throws' => self::throwInFiber(),
            '/callback-throws' => self::throwInCallback(),
            '/fork' => self::fork(),
            '/fork-waits' => self::forkAndWait(),
            '/pid' => Response::text((string) getmypid()),
            '/body' => Response::text((string) \strlen((string) $request->getBody())),
            '/upload' => self::upload($request),
            '/files' => self::openFiles((float) $query),
            '/large' => Response::text(str_repeat('x', (int) $query)),
            default => Response::text("hello from {$path}"),
        };
    }

    private static function wait(float $seconds): Response
    {
        delay($seconds);

        return Response::text('waited');
    }

    /** @return \Generator<string> */
    private static function pieces(float $seconds): \Generator
    {
        yield 'begin';
        delay($seconds);
        yield 'end';
    }

    /** @return \Generator<string> */
    private static function piecesBeforeExit(int $status): \Generator
    {
        yield from ['one', 'two', 'six'];
        exit($status);
    }

    private static function exitLater(float $seconds): never
    {
        delay($seconds);
        exit(4);
    }

    private static function fill(): never
    {
        for ($all = []; ;) {
            $all[] = str_repeat('x', self::MIB);
        }
    }

    private static function fillLater(float $seconds): never
    {
        delay($seconds);
        self::fill();
    }

    private static function hang(): Response
    {
        EventLoop::getSuspension()->suspend();

        return Response::text('never');
    }

    private static function sleep(float $seconds): Response
    {
        usleep((int) ($seconds * 1e6));

        return Response::text('slept');
    }

    private static function throwInFiber(): Response
    {
        async(static fn(): never => throw new \RuntimeException('from a fiber'));
        delay(0.01);

        return Response::text('answered');
    }

    private static function throwInCallback(): Response
    {
        EventLoop::queue(static fn(): never => throw new \RuntimeException('from a callback'));
        delay(0.01);

        return Response::text('answered');
    }

    private static function upload(ServerRequestInterface $request): Response
    {
        $file = $request->getUploadedFiles()['file'] ?? null;
        \assert($file instanceof UploadedFileInterface);

        return Response::text("{$file->getSize()}");
    }

    private static function fork(): Response
    {
        $pid = pcntl_fork();
        if ($pid === 0) {
            exit(0);
        }
        pcntl_waitpid($pid, $status);

        return Response::text('forked');
    }

    private static function forkAndWait(): Response
    {
        if (pcntl_fork() === 0) {
            pcntl_alarm(20);
            self::hang();
        }

        return Response::text('forked');
    }

    /** Keeps the process from having a free descriptor for some time, without keeping the event loop running. */
    private static function openFiles(float $seconds): Response
    {
        $files = [];
        $repeat = EventLoop::unreference(EventLoop::repeat(0.005, static function () use (&$files): void {
            while (($file = @fopen('/dev/null', 'r')) !== false) {
                $files[] = $file;
            }
        }));
        EventLoop::unreference(EventLoop::delay($seconds, static function () use (&$files, $repeat): void {
            EventLoop::cancel($repeat);
            $files = [];
        }));

        return Response::text('soon');
    }
}
