<?php

declare(strict_types=1);

use Amp\Dns\DnsConfig;
use Amp\Dns\Rfc1035StubDnsResolver;
use Amp\Dns\StaticDnsConfigLoader;
use Revolt\EventLoop;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\DnsLookup;
use Spindle\Tests\ScriptedNames;

use function Amp\Dns\dnsResolver;

require __DIR__ . '/../../../../vendor/autoload.php';

/** Looks up a name with amphp/dns, a scripted DNS server, and an error handler that throws for each message of PHP. */
error_reporting(\E_ALL);
set_error_handler(static fn(int $level, string $message, string $file, int $line): never
    => throw new ErrorException($message, 0, $level, $file, $line));

$server = stream_socket_server('udp://127.0.0.1:0', $code, $reason, \STREAM_SERVER_BIND);
assert($server !== false);
EventLoop::unreference(EventLoop::onReadable($server, static function () use ($server): void {
    $query = (string) stream_socket_recvfrom($server, 512, 0, $client);
    $isIpv4 = substr($query, -4, 2) === "\0\1";
    $answer = "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1"; // 192.0.2.1
    $head = substr($query, 0, 2) . "\x81\x80\0\1\0" . ($isIpv4 ? "\1" : "\0") . "\0\0\0\0";
    assert(is_string($client));
    stream_socket_sendto($server, $head . substr($query, 12) . ($isIpv4 ? $answer : ''), 0, $client);
}));

$config = new DnsConfig([(string) stream_socket_get_name($server, false)]);
// The resolver is created during the look-up, as amphp/dns creates its own.
dnsResolver(new ScriptedNames(static fn(): array
    => (new Rfc1035StubDnsResolver(null, new StaticDnsConfigLoader($config)))->resolve('a.test')));
echo implode(', ', DnsLookup::addresses('a.test', Deadline::in(20.0, null)));
