<?php

declare(strict_types=1);

namespace Spindle\Cli;

use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\PhpMessages;
use Spindle\Cli\Internal\ServeLog;
use Spindle\Cli\Internal\ServeOptions;
use Spindle\Http\Supervisor;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle serve`: serves an application over HTTP with several processes, and replaces and reloads them. */
final class ServeCommand extends Command
{
    private const HELP = <<<'HELP'
        Serves the application that a PHP file returns:

          <info>spindle serve app.php</info>             on 127.0.0.1:8080, a process for each CPU
          <info>spindle serve app.php --listen 0.0.0.0:80 --listen [::]:80 --processes 4</info>
          <info>spindle serve app.php --listen unix:///run/app.sock</info>
          <info>spindle serve app.php --listen tls://0.0.0.0:443 --certificate chain.pem</info>
          <info>spindle serve app.php --admin 127.0.0.1:9085 --status</info>
          <info>spindle serve app.php --watch</info>     while you work on it

        <comment>The application</comment>
          The file returns a PSR-15 request handler (a Spindle\Http\Application has
          more to tell), a closure that takes a request and returns a response, a
          PSR-11 container that has a request handler, or a closure without
          parameters that returns one of these. Each process loads it by itself.

          header(), setcookie(), http_response_code() and session_start() throw in
          it, as they could not know which request is meant. What it prints gets
          into the log.

        <comment>Signals</comment>
          HUP        reload: one after the other, each process is replaced by one that
                     has loaded the code anew. No request is lost. When the new code
                     does not come up in one, this and those after it go on as before.
                     As TERM when the terminal is gone that it was started at
          INT, TERM, QUIT
                     take no further connections, answer the requests that have come,
                     and end; a second one ends all at once
          A process that ends is replaced, later each time when it ends soon. When
          this command is killed, so are its processes.
          What the command itself has loaded is not reloaded: Spindle, and the files
          of Composer's "autoload.files". Where its libraries belong to a release that
          was left for another, a reload fails: restart it.

        <comment>Exit status</comment>
          0      ended by INT, TERM or QUIT; requests that got no answer are a warning
          130    ended at once by a second INT
          143    ended at once by a second TERM or QUIT
          254    the application does not come up, or an address can't be used
          255    bad options
        HELP;

    public function __construct()
    {
        parent::__construct('serve');
    }

    protected function configure(): void
    {
        [$value, $flag] = [InputOption::VALUE_REQUIRED, InputOption::VALUE_NONE];
        $this->setDescription('Serves an application over HTTP')
            ->setHelp(self::HELP)
            ->addArgument('app', InputArgument::REQUIRED, 'The PHP file that returns it')
            ->addOption(
                'listen',
                'l',
                $value | InputOption::VALUE_IS_ARRAY,
                "An address [default: 127.0.0.1:8080]:\nhost:port, [IPv6]:port, tls://host:port\nor unix:///path",
            )
            ->addOption(
                'processes',
                'p',
                $value,
                "So many processes [default: as many as\nusable CPUs; 1 with --watch]",
            )
            ->addOption(
                'watch',
                'w',
                $flag,
                "Reload when a PHP file changes in or below\nthe application's folder, vendor left out",
            )
            ->addOption(
                'admin',
                null,
                $value,
                "An address for /metrics, /healthz and\n/livez, which speak for all processes",
            )
            ->addOption(
                'admin-host',
                null,
                $value | InputOption::VALUE_IS_ARRAY,
                "A name by which it may be asked, beside IP\naddresses and localhost; * for any;\nseveral times",
            )
            ->addOption('status', null, $flag, 'A status page at the admin address')
            ->addOption(
                'certificate',
                null,
                $value,
                "The certificate chain for tls:// addresses,\na PEM file; read anew for each connection",
            )
            ->addOption('key', null, $value, "Its private key, a PEM file, where the\nchain's file does not have it")
            ->addOption(
                'max-requests',
                null,
                $value,
                "Replace a process after so many requests,\nor up to a tenth less",
            )
            ->addOption(
                'max-memory',
                null,
                $value,
                "Replace a process when PHP uses so many\nbytes in it, such as 500M (K, M or G)",
            )
            ->addOption(
                'memory-limit',
                null,
                $value,
                "PHP's memory_limit of a process, such as\n256M; =-1 for none [default: PHP's own, or\na share of the memory, 128M at least]",
            )
            ->addOption(
                'start-timeout',
                null,
                $value,
                "Seconds in which a process has to load the\napplication [default: 30]",
            )
            ->addOption(
                'stall-timeout',
                null,
                $value,
                "Kill a process whose event loop stands\nstill for so many seconds [default: 30]",
            )
            ->addOption('log-format', null, $value, "Lines on standard error: text or json\n[default: text]")
            ->addOption('quiet', null, $flag, 'Log warnings and errors only');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = ServeOptions::of($input);
        $problem = Supervisor::restartPhp();
        $error = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
        $log = new ServeLog($options->json, $error->isDecorated(), $options->quiet);
        PhpMessages::logTo($log);
        if ($problem !== null) {
            $log->warning(
                "What header(), setcookie(), http_response_code() and session_start() do in a handler is not noticed: {$problem}",
            );
        }

        return match ((new Supervisor($options->app, $options->addresses, $options->supervisor, $log))->run()) {
            0 => ExitStatus::OK,
            \SIGINT => ExitStatus::INTERRUPTED,
            default => ExitStatus::TERMINATED,
        };
    }
}
