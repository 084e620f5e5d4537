<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Serve;

use Revolt\EventLoop;
use Revolt\EventLoop\Driver\StreamSelectDriver;
use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\PhpMessages;
use Spindle\Cli\Internal\StandardErrorLog;
use Spindle\Http\Internal\Server\RequestName;
use Spindle\Http\Supervisor;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

#[AsCommand('serve', 'Serves an application over HTTP')]
final class ServeCommand extends Command
{
    private const HELP = <<<'HELP'
        Serves the application that a PHP file returns, with one process per CPU:

          <info>spindle serve app.php</info>             http://127.0.0.1:8080
          <info>spindle serve app.php --watch</info>     reload when a file changes

        <comment>The application</comment>
          The file returns one of these; each process loads it separately:
          - a PSR-15 request handler, such as a Spindle\Http\Application, which also
            has limits, a logger and health checks
          - a closure that takes a request and returns a response
          - a PSR-11 container that has a PSR-15 request handler
          - a closure without parameters that returns one of the above

          header(), setcookie(), http_response_code() and session_start() throw,
          because several requests run at once. Printed output goes to the log.

        <comment>Processes</comment>
          A process that exits is replaced. While processes exit soon after their
          start, the delay before each replacement grows. If this command is killed,
          its processes exit too.

        <comment>Signals</comment>
          HUP        Reload: replace one process after the other by one that has
                     loaded the new code. No request is lost. If the new code does not
                     start, the remaining processes keep the old code.
                     Spindle itself and the files of Composer's "autoload.files" are
                     not reloaded. After an update of Spindle, restart the command.
                     If the command's terminal has been closed, HUP acts as TERM.
          INT, TERM, QUIT
                     Accept no more connections, answer received requests, exit.
                     A second signal ends everything at once.

        <comment>Exit status</comment>
          0          Ended by INT, TERM or QUIT. Unanswered requests are in the log.
          130        Ended at once by a second INT.
          143        Ended at once by a second TERM or QUIT.
          254        The application does not start, or an address can't be used.
          255        An option is invalid.

        <comment>Examples</comment>
          Listen on all IPv4 and IPv6 addresses, with four processes:
            <info>spindle serve app.php -l 0.0.0.0:80 -l [::]:80 --processes 4</info>
          Listen on a Unix socket, for a proxy on this machine:
            <info>spindle serve app.php --listen unix:///run/app.sock</info>
          Serve HTTPS:
            <info>spindle serve app.php --listen tls://0.0.0.0:443 --certificate chain.pem</info>
          Serve metrics, health checks and a status page on another port:
            <info>spindle serve app.php --admin 127.0.0.1:9085 --status</info>
        HELP;

    private const VALUE = InputOption::VALUE_REQUIRED;
    private const VALUES = InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY;
    private const FLAG = InputOption::VALUE_NONE;

    /** The options in the order of the help, each with shortcut, mode, and help text in lines of at most 43 columns. */
    private const OPTIONS = [
        'listen' => ['l', self::VALUES, <<<'TEXT'
            Listen on host:port, [IPv6]:port,
            tls://host:port or unix:///path [default:
            127.0.0.1:8080]
            TEXT],
        'processes' => ['p', self::VALUE, "Start N processes [default: one per usable\nCPU; 1 with --watch]"],
        'watch' => ['w', self::FLAG, <<<'TEXT'
            Reload when a PHP file changes in or below
            the application's folder, except in vendor
            TEXT],
        'admin' => [null, self::VALUE, <<<'TEXT'
            Serve /metrics, /healthz and /livez on this
            address, for all processes together
            [default: off]
            TEXT],
        'admin-host' => [null, self::VALUES, <<<'TEXT'
            Also accept this host name at the admin
            address, or * for any. IP addresses and
            localhost are always accepted

            TEXT],
        'status' => [null, self::FLAG, "Serve a status page at / of the admin\naddress"],
        'certificate' => [null, self::VALUE, <<<'TEXT'
            Read the certificate chain for tls:// from
            this PEM file, again for each connection
            TEXT],
        'key' => [null, self::VALUE, <<<'TEXT'
            Read the private key from this PEM file
            [default: the certificate's file]
            TEXT],
        'max-requests' => [null, self::VALUE, <<<'TEXT'
            Replace a process after N requests, or up
            to 10% fewer [default: never]
            TEXT],
        'max-memory' => [null, self::VALUE, <<<'TEXT'
            Replace a process when its PHP uses this
            many bytes, such as 500M [default: never]
            TEXT],
        'memory-limit' => [null, self::VALUE, <<<'TEXT'
            Set PHP's memory_limit of each process, for
            example 256M, or --memory-limit=-1 for none
            [default: PHP's own, else a share of the
            machine's memory, at least 128M]
            TEXT],
        'start-timeout' => [null, self::VALUE, <<<'TEXT'
            Fail if a process does not load the
            application within this many seconds
            [default: 30]
            TEXT],
        'block-timeout' => [null, self::VALUE, <<<'TEXT'
            Kill a process whose event loop is blocked
            for this many seconds [default: 30]
            TEXT],
        'trace-blocks' => [null, self::FLAG, <<<'TEXT'
            Log which function blocks the event loop
            for 0.5 s, with its callers, for
            development [default: with --watch]
            TEXT],
        'log-format' => [null, self::VALUE, "Write text or json lines to standard error\n[default: text]"],
        'quiet' => [null, self::FLAG, 'Log only warnings and errors'],
    ];

    protected function configure(): void
    {
        $this->setHelp(self::HELP)
            ->addArgument('app', InputArgument::REQUIRED, 'The PHP file that returns the application');
        foreach (self::OPTIONS as $name => [$shortcut, $mode, $help]) {
            $this->addOption($name, $shortcut, $mode, $help);
        }
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = ServeOptions::of($input);
        $problem = Supervisor::restartPhp();
        $error = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
        $log = new StandardErrorLog($options->json, $error->isDecorated(), $options->quiet);
        PhpMessages::logTo($log, RequestName::logFields(...));
        if ($problem !== null) {
            $log->warning(
                'Calls of header(), setcookie(), http_response_code() and session_start() in a handler'
                    . " can't be reported: {$problem}",
            );
        }

        if (Supervisor::canFork()) {
            // With a driver that uses epoll, the forks of the supervisor would share one epoll descriptor and so each
            // other's events. StreamSelectDriver also stops waiting when a handler of pcntl_signal() must run.
            EventLoop::setDriver(new StreamSelectDriver());
        }

        return match ((new Supervisor($options->app, $options->addresses, $options->supervisor, $log))->run()) {
            0 => ExitStatus::OK,
            \SIGINT => ExitStatus::INTERRUPTED,
            default => ExitStatus::TERMINATED,
        };
    }
}
