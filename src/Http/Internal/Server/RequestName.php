<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\BackgroundWork;
use Spindle\Http\Internal\Message\Head;

/** Names the request that caused an event. Keeps no list of open requests, because a list would slow all requests. */
final readonly class RequestName
{
    private const MAX_TARGET_BYTES = 200;

    /** Maximum number of stack frames that are searched, so that an endless recursion does not use all memory. */
    private const MAX_FRAMES = 500;

    private const MAX_NAMED_REQUESTS = 3;

    public const IN_BACKGROUND_WORK = ' in a function of BackgroundWork';

    public function __construct(private Service $service) {}

    /**
     * Returns the name of the request that the current call stack handles; '' when it handles none. In a fiber that a
     * handler has started, the request is not found, because the fiber has its own call stack.
     */
    public static function current(): string
    {
        $exchange = self::exchange();

        return $exchange === null ? '' : self::name($exchange->head);
    }

    /** @return array<string, string> context of log entries about the request of {@see current()}; empty without one */
    public static function logFields(): array
    {
        return self::exchange()?->logFields() ?? [];
    }

    /** Returns method and route, such as "GET /aircraft/{number}"; method and path if no router set a route. */
    public static function route(ServerExchange $exchange): string
    {
        $head = $exchange->head;
        $path = substr($head->target, 0, strcspn($head->target, '?'));

        return "{$head->method} " . ($exchange->route?->getName() ?? self::shorten($path));
    }

    /** Returns the request whose handler runs in the current fiber; null if there is none. */
    public function ofFiber(): ?ServerExchange
    {
        $fiber = \Fiber::getCurrent();
        foreach ($this->exchanges() as $exchange) {
            if ($fiber !== null && $exchange->runningFiber() === $fiber) {
                return $exchange;
            }
        }

        return null;
    }

    /** Returns " while it handled GET /" for the {@see current()} request, or names BackgroundWork or open requests. */
    public function clause(): string
    {
        $current = self::current();

        return match (true) {
            $current !== '' => " while it handled {$current}",
            BackgroundWork::isCurrent() => self::IN_BACKGROUND_WORK,
            default => $this->openRequests(),
        };
    }

    /** Returns the {@see clause()} for the request whose fiber was ended by exit() or a fatal error. */
    public function clauseAtEnd(): string
    {
        if (BackgroundWork::ended() > 0) {
            return self::IN_BACKGROUND_WORK;
        }
        foreach ($this->exchanges() as $exchange) {
            if ($exchange->runningFiber() === null) {
                return ' while it handled ' . self::name($exchange->head);
            }
        }

        return $this->openRequests();
    }

    /** Returns " while these requests were open: GET /, GET /a, GET /b and 3 more"; '' if no request is open. */
    public function openRequests(): string
    {
        $exchanges = $this->exchanges();
        if ($exchanges === []) {
            return '';
        }
        $named = array_map(
            static fn(ServerExchange $exchange): string => self::name($exchange->head),
            \array_slice($exchanges, 0, self::MAX_NAMED_REQUESTS),
        );
        $more = \count($exchanges) - \count($named);

        return ' while these requests were open: ' . implode(', ', $named) . ($more === 0 ? '' : " and {$more} more");
    }

    /** Returns the request of {@see current()}, even if the server has already answered it. */
    private static function exchange(): ?ServerExchange
    {
        foreach (debug_backtrace(0, self::MAX_FRAMES) as $frame) {
            $exchange = $frame['args'][0] ?? null;
            $isHandling = ($frame['class'] ?? '') === Connection::class && $frame['function'] === 'handle';
            if ($isHandling && $exchange instanceof ServerExchange) {
                return $exchange;
            }
        }

        return null;
    }

    /** @return list<ServerExchange> */
    private function exchanges(): array
    {
        $exchanges = array_map(
            static fn(Connection $connection): ?ServerExchange => $connection->exchange,
            $this->service->connections,
        );

        return [...array_values(array_filter($exchanges)), ...array_values($this->service->lateExchanges)];
    }

    private static function name(Head $head): string
    {
        return "{$head->method} " . self::shorten($head->target);
    }

    private static function shorten(string $target): string
    {
        return \strlen($target) > self::MAX_TARGET_BYTES ? substr($target, 0, self::MAX_TARGET_BYTES) . '...' : $target;
    }
}
