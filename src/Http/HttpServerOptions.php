<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\Http\Internal\Server\Certificates;
use Spindle\Internal\NumberRange;

/**
 * Limits, deadlines and certificates of a server. The defaults suit most servers. Times are in seconds; INF means no
 * limit. "413 beyond" means: above the limit, the server responds with status 413.
 */
final readonly class HttpServerOptions
{
    /**
     * @param string|null $certificate   path of the PEM file with the certificate chain for tls:// addresses. The file
     *                                   is read for each connection, so it can be replaced
     * @param string|null $key           path of the private key (PEM), without a passphrase; null if $certificate
     *                                   contains the key
     * @param array<string, string> $certificates paths of PEM files with another chain and its key, by the host name
     *                                            that a client requests (SNI)
     * @param int   $maxTargetBytes      bytes of a request target; 414 beyond
     * @param int   $maxHeadBytes        bytes of a request's head, or of its trailers; 431 beyond
     * @param int   $maxHeaderFields     number of header lines, or of trailer lines; 431 beyond
     * @param int   $maxBodyBytes        bytes of a body, unless {@see Middleware\BodyLimit} sets another limit for
     *                                   the route; 413 beyond
     * @param FormLimits $forms          limits for bodies that are parsed; 413 beyond
     * @param float $headTimeout         from the start of a connection (after its TLS handshake), or from the first
     *                                   byte of a later request, to the end of the head; 408 beyond. If no byte has
     *                                   arrived, the server closes the connection without a response
     * @param float $tlsTimeout          from the start of a connection to the end of its TLS handshake
     * @param float $idleTimeout         how long a connection is kept after a response, until another request begins
     * @param float $handlerTimeout      how long a handler may take, without the time in which it waits for the
     *                                   client's body; 503 beyond
     * @param int   $minBodyRate         minimum bytes per second of a request body, on average over $rateWindow;
     *                                   408 below; 0 for no minimum
     * @param float $rateWindow          period over which the server averages the rate for $minBodyRate
     * @param float $writeTimeout        how long the server waits for a client that receives no byte of its response.
     *                                   The kernel reports received bytes in steps of up to 64 KB, so a very slow
     *                                   client can exceed this time although it receives bytes
     * @param int   $maxRequests         requests per connection
     * @param int   $maxConnections      open at the same time; fewer if the event loop (with select()) or the
     *                                   descriptor limit allows fewer. To accept more, the server closes connections
     *                                   that were idle longest. If none is idle, it closes connections of slow
     *                                   clients. If none is slow either, new connections wait in the kernel's queue,
     *                                   and each response ends its connection
     * @param int|null $maxConnectionsPerAddress open at the same time from one IPv4 address or IPv6 /64 network; null
     *                                           for half of the connections that the process can have. Above this
     *                                           number, the server closes an idle or slow connection of the same
     *                                           address or network. If there is none, it closes the new connection.
     *                                           This limit does not apply to clients of a Unix socket, or to proxies
     *                                           that {@see Middleware\TrustedProxies} trusts
     * @param int   $maxInFlight         requests handled at the same time; 503 with Retry-After beyond
     * @param float $idleGracePeriod     how long an idle connection is kept after {@see HttpServer::close()}
     * @param float $stopTimeout         how long to wait for responses after {@see HttpServer::close()}. Unanswered
     *                                   requests then get 503, and a warning is logged. If a handler blocks the
     *                                   process, a supervisor kills the process one second later. After a reload, the
     *                                   old process waits longer: each handler still has its full $handlerTimeout
     * @param float $blockWarning        how long a handler may block the event loop before a warning is logged; at
     *                                   least 0.1, or 0 for no warning
     *
     * @throws \ValueError when a number is out of its range, a key of $certificates is not a host name, or a value of
     *                     $certificates is not a path
     */
    public function __construct(
        public ?string $certificate = null,
        public ?string $key = null,
        public array $certificates = [],
        public int $maxTargetBytes = 8_192,
        public int $maxHeadBytes = 32_768,
        public int $maxHeaderFields = 100,
        public int $maxBodyBytes = 8_388_608,
        public FormLimits $forms = new FormLimits(),
        public float $headTimeout = 10.0,
        public float $tlsTimeout = 10.0,
        public float $idleTimeout = 60.0,
        public float $handlerTimeout = 60.0,
        public int $minBodyRate = 240,
        public float $rateWindow = 5.0,
        public float $writeTimeout = 60.0,
        public int $maxRequests = 10_000,
        public int $maxConnections = 10_000,
        public ?int $maxConnectionsPerAddress = null,
        public int $maxInFlight = 1_000,
        public float $idleGracePeriod = 0.5,
        public float $stopTimeout = 30.0,
        public float $blockWarning = 0.5,
    ) {
        NumberRange::checkTimeLimits([
            'headTimeout' => $headTimeout,
            'tlsTimeout' => $tlsTimeout,
            'idleTimeout' => $idleTimeout,
            'handlerTimeout' => $handlerTimeout,
            'rateWindow' => $rateWindow,
            'writeTimeout' => $writeTimeout,
            'idleGracePeriod' => $idleGracePeriod,
            'stopTimeout' => $stopTimeout,
        ]);
        NumberRange::checkPositiveCounts([
            'maxTargetBytes' => $maxTargetBytes,
            'maxHeadBytes' => $maxHeadBytes,
            'maxHeaderFields' => $maxHeaderFields,
            'maxRequests' => $maxRequests,
            'maxConnections' => $maxConnections,
            'maxConnectionsPerAddress' => $maxConnectionsPerAddress,
            'maxInFlight' => $maxInFlight,
        ]);
        self::checkBlockWarning($blockWarning);
        Certificates::checkOption($certificates);
        if ($maxBodyBytes < 0 || $minBodyRate < 0) {
            throw new \ValueError('The options maxBodyBytes and minBodyRate must be 0 or more');
        }
    }

    private static function checkBlockWarning(float $seconds): void
    {
        if ($seconds !== 0.0 && !($seconds >= 0.1)) {
            $given = NumberRange::text($seconds);
            throw new \ValueError("The option blockWarning must be 0 or at least 0.1 seconds, not {$given}");
        }
    }
}
