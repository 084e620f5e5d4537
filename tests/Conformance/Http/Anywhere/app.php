<?php

declare(strict_types=1);

/*
 * An application for everything in which servers could differ.
 */

use Amp\Cancellation;
use Nyholm\Psr7\Response as ForeignResponse;
use Nyholm\Psr7\Stream;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;
use Revolt\EventLoop;
use Spindle\Http\BackgroundWork;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\ReadOnlyStream;
use Spindle\Http\Middleware\BodyLimit;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;
use Spindle\Tests\Http\CallbackStream;
use Spindle\Tests\Http\UnclosableBody;

use function Amp\async;
use function Amp\delay;

$files = static function (array $tree) use (&$files): array {
    return array_map(static fn(mixed $file): mixed => $file instanceof UploadedFileInterface ? [
        'name' => $file->getClientFilename(),
        'type' => $file->getClientMediaType(),
        'size' => $file->getSize(),
        'error' => $file->getError(),
        'contents' => $file->getError() === UPLOAD_ERR_OK ? (string) $file->getStream() : null,
    ] : $files((array) $file), $tree);
};

$left = static function (ServerRequestInterface $request): bool {
    $cancellation = $request->getAttribute(Cancellation::class);

    return !$cancellation instanceof Cancellation || $cancellation->isRequested();
};

/** Returns no bytes for 50 ms, then whether it was read all the time. */
$hesitant = static fn(): StreamInterface => new class implements StreamInterface {
    use ReadOnlyStream;

    private int $asked = 0;
    private int $readyAt = 0;
    private bool $ended = false;

    public function read(int $length): string
    {
        if ($this->asked++ === 0) {
            $this->readyAt = hrtime(true) + 50_000_000;

            return 'one,';
        }
        $this->ended = hrtime(true) >= $this->readyAt;

        return $this->ended ? ($this->asked < 50 ? 'two' : "asked {$this->asked} times") : '';
    }

    public function eof(): bool
    {
        return $this->ended;
    }

    public function tell(): int
    {
        return 0;
    }

    public function close(): void {}
};

$refusedTwice = static function (ServerRequestInterface $request): ResponseInterface {
    $statuses = [];
    foreach ([1, 2] as $time) {
        try {
            $request->getParsedBody();
            $statuses[] = 200;
        } catch (HttpException $refusal) {
            $statuses[] = $refusal->status;
        }
    }

    return Response::json($statuses);
};

$statusOf = static function (Closure $ask): int {
    try {
        $ask();

        return 200;
    } catch (HttpException $refusal) {
        return $refusal->status;
    }
};

/** @return list<string> */
$noRows = static fn(): array => throw new HttpException(404, 'No rows', ['X-Name' => 'rows']);

/** @var array<string, Closure(ServerRequestInterface): ResponseInterface> $routes */
$routes = [
    '/text' => static fn(): ResponseInterface => Response::text("Grüße\n"),
    '/html' => static fn(): ResponseInterface => Response::html('<p>Hello</p>', 404),
    '/json' => static fn(): ResponseInterface => Response::json(['a/b' => 'ü', 'n' => 1.5]),
    '/binary' => static fn(): ResponseInterface => Response::binary(implode('', array_map(chr(...), range(0, 255)))),
    '/redirect' => static fn(): ResponseInterface => Response::redirect('/there?a=b c'),
    '/accepted' => static fn(): ResponseInterface => new Response(202, ['Location' => '/jobs/7'], 'queued'),
    '/located' => static fn(): ResponseInterface => new Response(200, ['Location' => '/jobs/7'], 'here'),
    '/scope' => static fn(): ResponseInterface => new Response(403, ['WWW-Authenticate' => 'Bearer'], 'no'),
    '/created' => static fn(): ResponseInterface => new Response(201, ['Location' => '/jobs/7'], 'made', 'Made'),
    '/nameless' => static fn(): ResponseInterface
        => new ForeignResponse(202, ['Location' => '/jobs/7'], 'queued', reason: ''),
    '/date' => static fn(): ResponseInterface
        => new Response(200, ['Date' => 'Sun, 06 Nov 1994 08:49:37 GMT', 'Status' => '404 x'], 'old'),
    '/no-content' => static fn(): ResponseInterface => new Response(204, ['X-Kept' => 'yes'], 'never sent'),
    '/reset' => static fn(): ResponseInterface => new Response(205, ['X-Kept' => 'yes'], 'never sent'),
    '/reset-stream' => static fn(): ResponseInterface
        => Response::stream(['never sent'], 'text/plain', 205, ['Content-Length' => '10']),
    '/not-modified' => static fn(): ResponseInterface => new Response(304, ['ETag' => '"1"'], 'never sent'),
    '/empty' => static fn(): ResponseInterface => new Response(200, ['X-Kept' => 'yes']),
    '/empty-stream' => static fn(): ResponseInterface => new Response(200, ['X-Kept' => 'yes'], Stream::create('')),
    '/upgrade' => static fn(): ResponseInterface
        => new Response(426, ['Upgrade' => 'HTTP/3.0', 'Connection' => 'Upgrade'], 'needed'),
    '/interim' => static fn(): ResponseInterface => new ForeignResponse(101, ['Upgrade' => 'x'], 'body'),
    '/injects' => static fn(): ResponseInterface => new ForeignResponse(200, ['X' => "a\n"], 'body'),
    '/hostile-reason' => static fn(): ResponseInterface => new ForeignResponse(404, [], 'body', reason: "Gone\r\nX: y"),
    '/no-reason' => static fn(): ResponseInterface => new ForeignResponse(404, [], 'body', reason: ''),
    '/no-type' => static fn(): ResponseInterface => new Response(200, [], 'bytes'),
    '/cookies' => static fn(): ResponseInterface => new Response(200, ['Set-Cookie' => ['a=1; Path=/', 'b=2']], 'two'),
    '/teapot' => static fn(): ResponseInterface => new Response(418, [], 'short and stout', "I'm a teapot"),
    '/wrong-length' => static fn(): ResponseInterface => new Response(200, ['Content-Length' => '3'], 'longer'),
    '/wrong-stream-length' => static fn(ServerRequestInterface $request): ResponseInterface
        => new ForeignResponse(200, ['Content-Length' => $request->getUri()->getQuery()], Stream::create('longer')),
    '/stream' => static fn(): ResponseInterface => Response::stream((static function (): Generator {
        yield 'one,';
        delay(0.001);
        yield 'two';
    })(), 'text/plain'),
    '/short' => static fn(): ResponseInterface
        => Response::stream(['only 12 long'], 'text/plain', 200, ['Content-Length' => '100']),
    '/finishes' => static fn(ServerRequestInterface $request): ResponseInterface
        => Response::stream((static function () use ($request): Generator {
            yield 'whole';
            delay(0.001);
            touch($request->getUri()->getQuery());
        })(), 'text/plain', 200, ['Content-Length' => '5']),
    '/background' => static function (ServerRequestInterface $request): ResponseInterface {
        BackgroundWork::start(static function () use ($request): void {
            delay(0.001);
            touch($request->getUri()->getQuery());
        });

        return Response::text('answered');
    },
    '/background-fails' => static function (ServerRequestInterface $request): ResponseInterface {
        BackgroundWork::start(static fn() => throw new RuntimeException('The first work failed'));
        BackgroundWork::start(static function () use ($request): void {
            echo 'printed during the response';
            delay(0.02);
            echo 'printed after the response';
            touch($request->getUri()->getQuery());
        });

        return Response::stream((static function (): Generator {
            yield 'one,';
            delay(0.001);
            yield 'two';
        })(), 'text/plain');
    },
    '/background-short' => static function (ServerRequestInterface $request): ResponseInterface {
        BackgroundWork::start(static function () use ($request): void {
            delay(0.001);
            touch($request->getUri()->getQuery());
        });

        return Response::stream(['only 12 long'], 'text/plain', 200, ['Content-Length' => '100']);
    },
    '/background-ends' => static function (ServerRequestInterface $request): ResponseInterface {
        [$end, $file] = explode('&', $request->getUri()->getQuery());
        BackgroundWork::start(static function () use ($file): void {
            delay(0.01);
            touch($file);
        });
        if ($end === 'work') {
            BackgroundWork::start(static fn() => exit());
        } elseif ($end === 'works') {
            BackgroundWork::start(static fn() => exit());
            BackgroundWork::start(static function (): never {
                delay(0.001);
                exit;
            });
        } elseif ($end === 'shutdown') {
            register_shutdown_function(static fn() => exit());
        } elseif ($end === 'awaited') {
            EventLoop::repeat(0.01, static fn() => null); // the event loop does not end without work
            BackgroundWork::start(static function (): void {
                try {
                    async(static fn() => exit())->await();
                } finally {
                    delay(0.001);
                }
            });
        } elseif ($end === 'garbage') {
            $cycle = new class {
                public ?object $self = null;

                public function __destruct()
                {
                    throw new RuntimeException('from a destructor');
                }
            };
            $cycle->self = $cycle;
            unset($cycle);
        }
        if (in_array($end, ['handler', 'garbage', 'shutdown'], true)) {
            exit;
        } elseif ($end === 'fiber') {
            header_register_callback(static fn() => usleep(10_000)); // longer than a turn of the event loop
            async(static fn() => exit());
            delay(0.005);
        } elseif ($end === 'buffer') {
            ob_start(null, 0, 0); // no flag allows to remove it
        } elseif ($end === 'output') {
            while (ob_get_level() > 0) {
                ob_end_clean();
            }
            echo 'printed';
            flush();
            throw new RuntimeException('No other response is possible');
        } elseif ($end === 'globals') {
            foreach (array_keys($GLOBALS) as $name) {
                unset($GLOBALS[$name]);
            }
        } elseif ($end === 'body') {
            return Response::stream((static function (): Generator {
                yield 'one';
                exit;
            })());
        }

        return Response::text('answered');
    },
    '/events' => static fn(ServerRequestInterface $request): ResponseInterface
        => Response::serverSentEvents((static function () use ($request): Generator {
            try {
                while (true) {
                    yield 'event';
                    delay(0.01);
                }
            } finally {
                delay(0.01);
                touch($request->getUri()->getQuery());
            }
        })()),
    '/fails-first' => static fn(): ResponseInterface => Response::stream((static function () use ($noRows): Generator {
        yield from $noRows();
    })(), 'text/csv', headers: ['Set-Cookie' => 'a=1']),
    '/fails-first-length' => static fn(): ResponseInterface => Response::stream((static function (): Generator {
        yield '';
        throw new LogicException('a secret');
    })(), 'text/csv', headers: ['Content-Length' => '5']),
    '/exits-midway' => static fn(): ResponseInterface => Response::stream((static function (): Generator {
        yield str_repeat('x', 100_000);
        exit;
    })(), 'text/plain'),
    '/read' => static function (): ResponseInterface {
        $response = Response::stream(['once'], 'text/plain');
        $response->getBody()->getContents();

        return $response;
    },
    '/breaks' => static fn(): ResponseInterface => Response::stream((static function (): Generator {
        yield str_repeat('x', 100_000);
        throw new RuntimeException('in the middle');
    })(), 'text/plain'),
    '/breaks-beside-work' => static function (): ResponseInterface {
        BackgroundWork::start(static fn() => delay(0.01));

        return Response::stream((static function (): Generator {
            yield str_repeat('x', 100_000);
            throw new RuntimeException('in the middle');
        })(), 'text/plain');
    },
    '/exhausts-midway' => static function (ServerRequestInterface $request): ResponseInterface {
        if ($request->getUri()->getQuery() === 'handler-registers-exit') {
            register_shutdown_function(static fn() => exit());
        }

        return Response::stream((static function (): Generator {
            yield str_repeat('x', 100_000);
            ini_set('memory_limit', '16M');
            yield str_repeat('x', 1 << 30);
        })(), 'text/plain');
    },
    '/exits-midway-and-at-the-end' => static function (): ResponseInterface {
        register_shutdown_function(static fn() => exit());

        return Response::stream((static function (): Generator {
            yield str_repeat('x', 100_000);
            exit;
        })(), 'text/plain');
    },
    '/exits-midway-and-later' => static function (): ResponseInterface {
        BackgroundWork::start(static function (): never {
            delay(0.01);
            exit;
        });

        return Response::stream((static function (): Generator {
            yield str_repeat('x', 100_000);
            exit;
        })(), 'text/plain');
    },
    '/callback' => static fn(): ResponseInterface
        => new ForeignResponse(200, ['X-Kept' => 'yes'], new CallbackStream(static fn(): string => 'made at once')),
    '/callback-cut' => static fn(): ResponseInterface
        => new ForeignResponse(200, ['Content-Length' => '4'], new CallbackStream(static fn(): string => 'made whole')),
    '/unknown-mode' => static function (): ResponseInterface {
        $file = fopen(__DIR__ . '/digits.txt', 'rbe'); // Nyholm does not know this mode, so isReadable() returns false

        return new ForeignResponse(200, [], $file === false ? null : $file);
    },
    '/callback-read' => static function (): ResponseInterface {
        $body = new CallbackStream(static fn(): string => 'made once');
        $body->getContents();

        return new ForeignResponse(200, [], $body);
    },
    '/callback-fails' => static fn(): ResponseInterface
        => new ForeignResponse(200, ['X-Kept' => 'yes'], new CallbackStream($noRows)),
    '/not-closable' => static fn(): ResponseInterface
        => new ForeignResponse(200, ['Content-Type' => 'text/plain'], new UnclosableBody('whole')),
    '/body-prints' => static function (): ResponseInterface {
        $body = new UnclosableBody();
        $body->write('printed');

        return new ForeignResponse(200, [], $body);
    },
    '/hesitant' => static fn(): ResponseInterface => new Response(200, [], $hesitant()),
    '/twice' => $refusedTwice,
    '/waits' => static function (): ResponseInterface {
        $slow = async(static function (): string {
            delay(0.002);

            return 'a';
        });
        $quick = async(static fn(): string => 'b');

        return Response::json([$slow->await(), $quick->await()]);
    },
    '/throws' => static fn(): ResponseInterface => throw new LogicException('a secret'),
    '/exits' => static function (): ResponseInterface {
        header('Location: /elsewhere');
        ob_start();
        echo 'printed';
        exit('printed, too');
    },
    '/exhausts' => static function (): ResponseInterface {
        ini_set('memory_limit', '16M');

        return Response::text(str_repeat('x', 1 << 30));
    },
    '/refuses' => static fn(): ResponseInterface
        => throw new HttpException(409, 'The name is taken', ['X-Name' => 'taken']),
    '/locks-a-buffer' => static function (ServerRequestInterface $request): ResponseInterface {
        ob_start(null, 0, 0); // no flag allows to remove it
        echo 'printed';

        return $request->getUri()->getQuery() === 'stream'
            ? Response::stream(['text'], 'text/plain')
            : Response::text('text');
    },
    '/leaves-buffers' => static function (): ResponseInterface {
        if (PHP_SAPI !== 'cli') {
            echo 'printed';
            ob_start();
            echo 'printed';
        }

        return Response::text('answered');
    },
    '/flushes' => static function (): ResponseInterface {
        if (PHP_SAPI !== 'cli') {
            echo 'printed';
            ob_flush();
        }

        return Response::text('answered');
    },
    '/prints' => static function (): ResponseInterface {
        echo PHP_SAPI === 'cli' ? '' : 'printed';

        return Response::text('answered');
    },
    '/file' => static fn(ServerRequestInterface $request): ResponseInterface => Response::file(
        __DIR__ . '/digits.txt',
        $request,
        headers: ['ETag' => '"d"', 'Last-Modified' => 'Sun, 06 Nov 1994 08:49:37 GMT'],
    ),
    '/request' => static fn(ServerRequestInterface $request): ResponseInterface => Response::json([
        'method' => $request->getMethod(),
        'target' => $request->getRequestTarget(),
        'path' => $request->getUri()->getPath(),
        'query' => $request->getQueryParams(),
        'scheme' => $request->getUri()->getScheme(),
        'cookies' => $request->getCookieParams(),
        'x' => $request->getHeader('x-some'),
        'empty' => $request->getHeader('x-empty'),
        'type' => $request->getHeaderLine('Content-Type'),
        'left' => $left($request),
        'client' => $request->getServerParams()['REMOTE_ADDR'],
        'body' => $request->getParsedBody(),
    ]),
    '/echo' => static fn(ServerRequestInterface $request): ResponseInterface
        => Response::binary((string) $request->getBody()),
    '/form' => static fn(ServerRequestInterface $request): ResponseInterface
        => Response::json(['fields' => $request->getParsedBody(), 'files' => $files($request->getUploadedFiles())]),
    '/fields' => static fn(ServerRequestInterface $request): ResponseInterface
        => Response::json($request->getParsedBody()),
    '/again' => static fn(ServerRequestInterface $request): ResponseInterface => Response::json([
        $request->getParsedBody(), $request->getBody()->getContents(), (string) $request->getBody(),
        (string) $request->withAttribute('a', 1)->getBody(), $request->getBody()->getContents(),
    ]),
    '/rewound' => static function (ServerRequestInterface $request): ResponseInterface {
        $fields = $request->getParsedBody();
        $body = $request->getBody();
        $rest = $body->read(1);
        $body->eof() ? $body->rewind() : null; // as MethodOverrideMiddleware of Slim does

        return Response::json(
            [$fields, $rest, $body->tell(), $body->getContents(), (int) $body->getSize(), $body->isSeekable()],
        );
    },
    '/parsed-late' => static fn(ServerRequestInterface $request): ResponseInterface
        => Response::json([(string) $request->getBody(), $request->getParsedBody(), (string) $request->getBody()]),
    '/resource' => static function (ServerRequestInterface $request): ResponseInterface {
        $parsed = $request->getParsedBody();
        $body = $request->getBody()->detach();

        return Response::json([$parsed, is_resource($body) ? stream_get_contents($body, null, 0) : null]);
    },
    '/encoded' => static fn(ServerRequestInterface $request): ResponseInterface
        => Response::json([$statusOf($request->getParsedBody(...)), base64_encode((string) $request->getBody())]),
    '/small' => (new MiddlewareStack(
        static fn(ServerRequestInterface $request): ResponseInterface => Response::binary((string) $request->getBody()),
        new BodyLimit(10),
    ))->handle(...),
];

$notFound = static fn(): ResponseInterface => Response::text("Not Found\n", 404);

if (($_SERVER['QUERY_STRING'] ?? '') === 'app-registers-exit') {
    register_shutdown_function(static fn() => exit());
}
if (($_SERVER['QUERY_STRING'] ?? '') === 'app-registers-output') {
    register_shutdown_function(static fn() => print 'after the response');
}

return static fn(ServerRequestInterface $request): ResponseInterface
    => ($routes[$request->getUri()->getPath()] ?? $notFound)($request);
