<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\KnownOptions\Meaning;
use Spindle\Cli\Internal\Run\KnownOptions\OptionTable;

/** The table of the options of `spindle run`, and the pages that are made from it. */
final class OptionPagesTest extends TestCase
{
    /** The options of GNU parallel 20221122, in the order of its manual's source. Those in brackets take a value. */
    private const PARALLEL = 'B= E= H= I= L= T U= W= X Y arg-file= argfile= a= arg-file-sep= argfilesep= arg-sep='
        . ' argsep= bar basefile= bf= basenameextensionreplace= bner= basenamereplace= bnr= bg'
        . ' bin= block-size= blocksize= block= block-timeout= blocktimeout= bt= bug cat cleanup'
        . ' col-sep= colsep= C= color-failed colour-failed colorfailed colourfailed color-fail'
        . ' colour-fail colorfail colourfail cf color colour compress controlmaster M csv'
        . ' ctag-string= ctagstring= ctag ctrl-c ctrlc debug= D= delay= delimiter= d='
        . ' dirnamereplace= dnr= dry-run dryrun dr embed env= eof= e= eta exit x'
        . ' extensionreplace= er= fg fifo filter-hosts filterhosts filter-host filter= g gnu'
        . ' group-by= groupby= group halt-on-error= haltonerror= halt= header= help h hgrp'
        . ' hostgrp hostgroup hostgroups interactive p joblog= jl= jobs= j= keep-order keeporder'
        . ' k latest-line latestline ll limit= line-buffer line-buffered linebuffer linebuffered'
        . ' lb linkinputsource= xapplyinputsource= link xapply load= m max-args= maxargs= n='
        . ' max-chars= maxchars= s= max-line-length-allowed maxlinelengthallowed max-lines='
        . ' maxlines= l= max-procs= maxprocs= P= max-replace-args= maxreplaceargs= N= memfree='
        . ' memsuspend= min-version= minversion= nice= no-ctrl-c no-ctrlc noctrlc no-keep-order'
        . ' nokeeporder nok no-k no-run-if-empty norunifempty r nonall noswap null 0'
        . ' number-of-cores numberofcores number-of-cpus numberofcpus number-of-sockets'
        . ' numberofsockets number-of-threads numberofthreads onall open-tty o output-as-files'
        . ' outputasfiles files parens= pipe-part pipepart pipe spreadstdin plain plus'
        . ' process-slot-var= processslotvar= profile= J= progress quote q recend= recordenv'
        . ' record-env recstart= regexp regex remove-rec-sep removerecsep rrs replace= i='
        . ' results= result= res= resume-failed resumefailed resume retries= retry-failed'
        . ' retryfailed return= round-robin roundrobin round rpl= rsync-opts= rsyncopts='
        . ' semaphore-name= semaphorename= id= semaphore-timeout= semaphoretimeout= st='
        . ' semaphore seqreplace= session shard= shebang hashbang shell-completion='
        . ' shellcompletion= shell-quote shellquote shell_quote show-limits showlimits shuf'
        . ' silent skip-first-line skipfirstline slotreplace= sql-and-worker= sqlandworker='
        . ' sql-master= sqlmaster= sql-worker= sqlworker= sql= ssh-delay= sshdelay= ssh='
        . ' sshloginfile= slf= sshlogin= S= tag-string= tagstring= tag tee template= tmpl='
        . ' term-seq= termseq= timeout= tmpdir= tempdir= tmux-pane tmuxpane tmux tollef'
        . ' total-jobs= totaljobs= total= transfer-file= transferfile= transfer-files='
        . ' transferfiles= tf= transfer trc= trim= tty ungroup u use-compress-program='
        . ' compress-program= usecompressprogram= compressprogram= use-cores-instead-of-threads'
        . ' usecoresinsteadofthreads use-cpus-instead-of-cores usecpusinsteadofcores'
        . ' use-decompress-program= decompress-program= usedecompressprogram= decompressprogram='
        . ' use-sockets-instead-of-threads usesocketsinsteadofthreads verbose t version V wait'
        . ' will-cite willcite nn nonotice no-notice work-dir= workdir= wd= xargs';

    /** The options of xargs (findutils 4.9). */
    private const XARGS = '0 null a arg-file d delimiter E e eof I i replace L max-lines l n max-args o open-tty P'
        . ' max-procs p interactive process-slot-var r no-run-if-empty s max-chars show-limits t verbose x exit help'
        . ' version';

    /** Options that are flags in GNU parallel and take a value here, which the pages say. */
    private const OTHER_VALUE = ['progress'];

    public function testEveryOptionOfGnuParallelIsInTheTable(): void
    {
        $table = OptionTable::ofRun();
        foreach (explode(' ', self::PARALLEL) as $option) {
            $name = rtrim($option, '=');
            $known = $table->find($name);
            self::assertNotNull($known, OptionPages::spelled($name));
            self::assertNotSame(Meaning::Own, $known->meaning, $name);
            if (!\in_array($name, self::OTHER_VALUE, true)) {
                self::assertSame(str_ends_with($option, '='), $known->takesValue(), "the value of {$name}");
            }
        }
    }

    public function testEveryOptionOfXargsIsInTheTable(): void
    {
        $known = [];
        foreach (OptionTable::groups() as $options) {
            foreach ($options as $option) {
                array_push($known, ...$option->xargs);
                self::assertSame([], array_diff($option->xargs, $option->names));
            }
        }
        self::assertEqualsCanonicalizing(explode(' ', self::XARGS), $known);
    }

    public function testNoSpellingHasTwoMeaningsAndEachRefusalHasAHint(): void
    {
        $seen = [];
        foreach (OptionTable::groups() as $options) {
            foreach ($options as $option) {
                self::assertSame([], array_intersect($option->names, $seen));
                array_push($seen, ...$option->names);
                self::assertNotSame('', $option->text, $option->name());
                self::assertDoesNotMatchRegularExpression('/(?<!\.)\.$/D', $option->text, $option->name());
            }
        }
    }

    public function testThePagesAreMadeFromTheTable(): void
    {
        foreach (OptionPages::all() as $path => $content) {
            self::assertStringEqualsFile($path, $content, 'Run php tools/option-pages.php and commit the pages');
        }
    }
}
